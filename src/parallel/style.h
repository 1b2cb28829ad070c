// A style: what is done to one module or one bare parameter, as data. It names no collective; which
// one runs follows from each edge (tensor/conversion.h). Adding a style is one file in styles/ and
// one line in styles/styles.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/module.h"
#include "parallel/resolve.h"

namespace shardproof {

// A placement before it meets a module.
enum class Spot {
  kWhole,          // R: every rank holds the whole
  kAddend,         // P: every rank holds an addend
  kFeature,        // S: of a port, its last dim, cut as the parameter dim that the port follows
  kTokens,         // S: of a port [batch, tokens, ...], by tokens
  kStream,         // as the residual stream lies: kTokens with sequence parallel, else kWhole
  kShareOfStream,  // of a gradient: kAddend with sequence parallel, else kWhole
  kFirst,          // S: of a parameter, dim 0 by its own cut (experts)
  kRows,     // S: of a parameter, its output features: the last but one of several dims, or its one
  kColumns,  // S: of a parameter, its last dim by its own cut
};

// outside, inside, grad_inside, grad_outside, as in Edge. A parameter that is cut with copies gets
// its gradient inside as addends: every holder of a copy sees only its own use. One that is to be
// cut by input features and has none, a bias, is whole on coordinate 0 and zero elsewhere instead.
struct EdgeStyle {
  std::string name;  // of the input, output or parameter, "*" = any; absent ones are skipped
  Spot outside, inside, grad_inside, grad_outside;
};

struct Style {
  std::string name;
  std::vector<std::string> fits = {};  // types of modules, e.g. {"Linear"}; empty: any
  // An input or output without an edge comes and goes as it does without the style, and is whole
  // unless `passes`.
  std::vector<EdgeStyle> inputs = {}, outputs = {}, parameters = {};
  // Values without an edge may be cut by features: the module computes on whatever part it gets.
  bool passes = false;
  // Of a rule that names a parameter instead of a module; without it the style takes no parameters.
  std::optional<EdgeStyle> bare = {};
  // The parameter dim that is cut must have several sections.
  bool packed = false;
  std::string axis = "tp";  // of all edges of parameters, and of the module's values
  // The module gets the dispatcher that moves tokens to experts on other ranks of "ep".
  bool dispatches = false;
  std::vector<std::string> aliases = {};  // names of older APIs
};

class StyleRegistry {
 public:
  void add(Style style);
  // nullptr where there is none of this name or alias.
  const Style* find(const std::string& name) const;
  // Without aliases.
  std::vector<std::string> names() const;
  // Of aliases and names the nearest, "" where none is near.
  std::string nearest(const std::string& name) const;
  const std::vector<Style>& styles() const { return styles_; }

 private:
  std::vector<Style> styles_;
};

// All styles of this library.
const StyleRegistry& shipped_styles();

}  // namespace shardproof

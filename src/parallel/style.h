// A style: what is done to one module or one bare parameter, as data. It names no collective; which
// one runs follows from each edge (tensor/conversion.h). Adding a style is one file in styles/ and
// one line in styles/all.cpp.
#pragma once

#include <string>
#include <vector>

#include "nn/module.h"
#include "parallel/resolve.h"

namespace shardproof {

// A placement before it meets a module.
enum class Spot {
  kWhole,    // R: every rank holds the whole
  kAddend,   // P: every rank holds an addend
  kFeature,  // S: of a port, its last dim, cut as the parameter dim that the port follows
  kDim0,     // S: of a parameter, dim 0 by its own cut
  kDim1,     // S: of a parameter, dim 1 by its own cut
};

// outside, inside, grad_inside, grad_outside, as in Edge. A parameter that is cut with copies gets
// its gradient inside as addends: every holder of a copy sees only its own use.
struct EdgeStyle {
  std::string name;  // of the input, output or parameter; absent ones are skipped
  Spot outside, inside, grad_inside, grad_outside;
};

struct Style {
  std::string name;
  std::vector<std::string> fits;  // types of modules, e.g. {"Linear"}; empty: any
  std::vector<EdgeStyle> inputs, outputs, parameters;
};

class StyleRegistry {
 public:
  void add(Style style);
  // Throws InputError naming the rule, with the nearest known name.
  const Style& find(const PlanRule& rule) const;
  std::vector<std::string> names() const;

 private:
  std::vector<Style> styles_;
};

// All styles of this library.
const StyleRegistry& shipped_styles();

}  // namespace shardproof

// The values that modules pass to each other, as far as modules state them (ports and links of
// nn/module.h): how wide they are, which of them get a gradient, and which inputs are one tensor.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nn/module.h"

namespace shardproof {

class Values {
 public:
  explicit Values(Module& model);

  // The size of the last dim of a value [batch, tokens, width], by these rules in order: the port
  // follows a dim of a parameter; it states a width; a link joins it to a port whose width is
  // known; its module is a leaf whose parameters have one dim (a norm). std::nullopt where none
  // applies (token ids). `section`: of that section of the cut that the port follows.
  std::optional<int64_t> width(const std::string& path, const std::string& port, bool input,
                               int64_t section = -1) const;

  // Whether a gradient flows back through the value: it depends on a parameter that is trained. An
  // input that no link reaches counts as one that does, except those of the model.
  bool has_grad(const std::string& path, const std::string& port, bool input) const;

  // Whether the port holds int64 values.
  bool is_integer(const std::string& path, const std::string& port, bool input) const;

  // Inputs of siblings with the same source are one tensor: {parent, end of the link}, empty where
  // the value is made of several or no link says.
  std::string source(const std::string& path, const std::string& port) const;

 private:
  struct Node {
    std::string path, port;
    bool input = false;
    int64_t section = -1;
    auto operator<=>(const Node&) const = default;
  };
  struct Known {
    std::vector<size_t> to;     // by links and through modules, along the flow
    std::vector<size_t> alike;  // of the same width
    int64_t width = -1;
    std::vector<int64_t> sections;  // widths
    bool has_grad = false;
    bool integer = false;
    bool linked = false;
    std::vector<std::string> sources;
  };

  size_t index(const Node& node);
  const Known* find(const std::string& path, const std::string& port, bool input) const;
  void take_in(const Module& module);
  void connect(const Module& module, const Link& link);
  void spread_width(size_t from);
  void spread_grad(size_t from);

  std::map<Node, size_t> index_;
  std::vector<Known> nodes_;
};

}  // namespace shardproof

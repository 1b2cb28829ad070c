// Attaches the edges of a resolved module: inputs are converted before its forward, outputs after
// it.
#pragma once

#include "nn/module.h"
#include "parallel/convert_node.h"

namespace shardproof {

// What siblings share: the first child that reads a value converts it, later ones with the same
// edge take the result, so that one backward conversion carries the sum of their gradients. Lives
// from the beginning of the parent's call to its end.
class SharingScope final : public ModuleHook {
 public:
  void before(Module&, NamedTensors&) override { entries_.clear(); }
  void after(Module&, NamedTensors&) override { entries_.clear(); }

  at::Tensor convert(const at::Tensor& value, const Edge& edge, const AxisView& axis,
                     const Site& site);

 private:
  struct Entry {
    at::Tensor value;  // kept alive, so that its identity cannot be taken by another
    Edge edge;
    at::Tensor converted;
  };
  std::vector<Entry> entries_;
};

// How many tokens the current call of the model has in each sequence: what a value that is cut by
// tokens must know of the others. On the root: dim 1 of its first input that has one.
class TokenCount final : public ModuleHook {
 public:
  void before(Module& root, NamedTensors& inputs) override;
  // The edge with the width of values cut by tokens filled in.
  Edge complete(Edge edge) const;

 private:
  int64_t tokens_ = -1;
};

class EdgeHook final : public ModuleHook {
 public:
  // `parent`: the scope of the parent module's call; nullptr for the root.
  EdgeHook(ResolvedModule module, AxisView axis, std::shared_ptr<SharingScope> parent,
           std::shared_ptr<const TokenCount> tokens)
      : module_(std::move(module)),
        axis_(axis),
        parent_(std::move(parent)),
        tokens_(std::move(tokens)) {}

  void before(Module& module, NamedTensors& inputs) override;
  void after(Module& module, NamedTensors& outputs) override;

 private:
  ResolvedModule module_;
  AxisView axis_;
  std::shared_ptr<SharingScope> parent_;
  std::shared_ptr<const TokenCount> tokens_;
};

}  // namespace shardproof

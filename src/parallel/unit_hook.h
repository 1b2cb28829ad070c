// Attaches units to the modules that they surround: gather before, free after, and the same in
// backward.
#pragma once

#include "nn/module.h"
#include "parallel/unit.h"

namespace shardproof {

class UnitHook final : public ModuleHook {
 public:
  explicit UnitHook(std::shared_ptr<Unit> unit) : unit_(std::move(unit)) {}
  void before(Module&, NamedTensors&) override;
  void after(Module&, NamedTensors& outputs) override;

 private:
  std::shared_ptr<Unit> unit_;
};

// On the root, outermost: at the start of a call forgets what an earlier call left gathered; at the
// end of its backward finishes every unit, in the order of the plan, so that all ranks reduce in
// one order.
class RootHook final : public ModuleHook {
 public:
  explicit RootHook(std::vector<std::shared_ptr<Unit>> units) : units_(std::move(units)) {}
  void before(Module&, NamedTensors&) override;
  void after(Module&, NamedTensors& outputs) override;

 private:
  std::vector<std::shared_ptr<Unit>> units_;
};

}  // namespace shardproof

// A mixture of experts in the place of an MLP: router, experts and, where asked for, an MLP that
// every token passes.
#pragma once

#include "nn/experts.h"
#include "nn/router.h"

namespace shardproof {

struct MoeOptions {
  RouterOptions router;
  ExpertsOptions experts;  // `count` is the router's
  std::string router_name = "gate";
  std::optional<GatedMlpOptions> shared = {};  // shared_experts
};

// Input "hidden_states" [..., hidden], output "output" the same: what the experts give, plus what
// shared_experts gives. Children `router_name`, experts, shared_experts.
class MoeBlock final : public Module {
 public:
  explicit MoeBlock(const MoeOptions& options);

  std::vector<Link> links() const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  std::string router_name_;
  std::shared_ptr<TopKRouter> router_;
  std::shared_ptr<Experts> experts_;
  std::shared_ptr<GatedMlp> shared_;
};

}  // namespace shardproof

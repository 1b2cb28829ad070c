#include "nn/moe_block.h"

#include <ATen/core/Tensor.h>

#include "base/check.h"

namespace shardproof {
namespace {

constexpr const char* kExperts = "experts";
constexpr const char* kShared = "shared_experts";

}  // namespace

MoeBlock::MoeBlock(const MoeOptions& options)
    : Module("MoeBlock", {.inputs = {{"hidden_states"}}}), router_name_(options.router_name) {
  SP_EXPECT(options.router.hidden == options.experts.hidden,
            "the router reads tokens of width {}, the experts of {}", options.router.hidden,
            options.experts.hidden);
  ExpertsOptions experts = options.experts;
  experts.count = options.router.experts;
  router_ = add_child(router_name_, std::make_shared<TopKRouter>(options.router));
  experts_ = add_child(kExperts, std::make_shared<Experts>(experts));
  if (options.shared) shared_ = add_child(kShared, std::make_shared<GatedMlp>(*options.shared));
}

std::vector<Link> MoeBlock::links() const {
  std::vector<Link> links = {{{"", "hidden_states"}, {router_name_, "hidden_states"}},
                             {{"", "hidden_states"}, {kExperts, "hidden_states"}},
                             {{router_name_, "top_k_index"}, {kExperts, "top_k_index"}},
                             {{router_name_, "top_k_weights"}, {kExperts, "top_k_weights"}},
                             {{kExperts, "output"}, {"", "output"}}};
  if (shared_) {
    links.push_back({{"", "hidden_states"}, {kShared, "hidden_states"}});
    links.push_back({{kShared, "output"}, {"", "output"}});
  }
  return links;
}

NamedTensors MoeBlock::forward(const NamedTensors& inputs) {
  const at::Tensor& x = inputs.at("hidden_states");
  const NamedTensors routes = router_->call({}, {{"hidden_states", x}});
  at::Tensor output = only(experts_->call({}, {{"hidden_states", x},
                                               {"top_k_index", routes.at("top_k_index")},
                                               {"top_k_weights", routes.at("top_k_weights")}}));
  if (shared_) output = output + (*shared_)(x);
  return {{"output", output}};
}

}  // namespace shardproof

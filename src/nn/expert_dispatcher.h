// The seam between the experts of a layer and where their tokens are: on one rank, or on many.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace shardproof {

// What a router decided for the tokens that this rank has.
struct Routes {
  at::Tensor tokens;   // [T, hidden]
  at::Tensor experts;  // int64 [T, k], global ids
  at::Tensor weights;  // [T, k], of the experts' outputs
};

// Runs experts that this rank holds: rows [R, hidden] and the global id of the expert of each row,
// int64 [R], to [R, hidden], not weighted. R may be 0: the graph reaches the parameters all the
// same.
using RunExperts = std::function<at::Tensor(const at::Tensor& rows, const at::Tensor& experts)>;

class ExpertDispatcher {
 public:
  virtual ~ExpertDispatcher() = default;
  // The weighted sum over each token's experts, [T, hidden], with gradients of tokens, weights and
  // parameters.
  virtual at::Tensor combine(const Routes& routes, const RunExperts& run) = 0;
};

// A module whose experts may be on other ranks than its tokens.
class DispatchesExperts {
 public:
  virtual ~DispatchesExperts() = default;
  // Without one (nullptr, as at first) the routes to experts that are not held give zeros: an
  // addend of the output.
  virtual void set_dispatcher(std::shared_ptr<ExpertDispatcher> dispatcher) = 0;
};

}  // namespace shardproof

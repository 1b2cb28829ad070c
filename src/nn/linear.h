// Linear: output = input @ weight^T + bias, on whatever part of the weight is held.
#pragma once

#include "nn/initial_values.h"
#include "nn/module.h"

namespace shardproof {

struct LinearOptions {
  int64_t in = 0;
  int64_t out = 0;
  bool bias = false;
  Cut in_cut = {};            // of weight dim 1
  Cut out_cut = {};           // of weight dim 0 and of the bias
  ParamPtr weight = nullptr;  // where it is tied to another module's: used instead of an own one
};

// Input "input" [..., in held], output "output" [..., out held]; parameters "weight" [out, in] and,
// where asked for, "bias" [out]. A part of width 0 works on either side: no inputs give zeros (plus
// the bias), and the graph reaches the parameters all the same.
class Linear final : public Module, public StatesInitialValues {
 public:
  explicit Linear(LinearOptions options);

  const ParamPtr& weight() const { return weight_; }
  const ParamPtr& bias() const { return bias_; }  // nullptr where there is none
  // The weight normal, the bias zeros.
  InitialValues initial_values(const std::string& parameter) const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  ParamPtr weight_;
  ParamPtr bias_;
};

}  // namespace shardproof

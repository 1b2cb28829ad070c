// A Linear that is whole on every rank and whose output comes in two named parts.
#pragma once

#include "nn/initial_values.h"
#include "nn/module.h"

namespace shardproof {

struct SplitLinearOptions {
  int64_t in = 0;
  int64_t compressed = 0;  // output features of the first part
  int64_t rope = 0;        // and of the second
  bool bias = false;
};

// The down projection of multi-head latent attention (kv_a_proj_with_mqa of DeepSeek): input
// "input"
// [..., in]; outputs "compressed" [..., compressed] and "rope" [..., rope]; parameters "weight"
// [compressed + rope, in] and, where asked for, "bias". The parts have names because their
// gradients come back differently under tensor parallelism: see parallel/styles/mla_kv_a_proj.cpp.
class SplitLinear final : public Module, public StatesInitialValues {
 public:
  explicit SplitLinear(SplitLinearOptions options);

  // The weight normal, the bias zeros.
  InitialValues initial_values(const std::string& parameter) const override;

 protected:
  NamedTensors forward(const NamedTensors& inputs) override;

 private:
  int64_t compressed_, rope_;
  ParamPtr weight_, bias_;
};

}  // namespace shardproof

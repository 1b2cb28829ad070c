#include "parallel/styles/styles.h"

namespace shardproof {

const StyleRegistry& shipped_styles() {
  static const StyleRegistry registry = [] {
    StyleRegistry all;
    all.add(all_reduce_style());
    all.add(colwise());
    all.add(colwise_gather_output());
    all.add(colwise_loss_parallel());
    all.add(embedding_colwise());
    all.add(embedding_rowwise());
    all.add(ep_dispatch_experts_all_reduce());
    all.add(ep_dispatch_experts_all_to_all());
    all.add(grouped_gemm());
    all.add(local_params());
    all.add(mla_kv_a_proj());
    all.add(moe_identity_expert());
    all.add(moe_tp_experts());
    all.add(packed_colwise());
    all.add(packed_rowwise());
    all.add(replicate_style());
    all.add(replicated_with_grad_allreduce());
    all.add(rowwise());
    all.add(rowwise_split_input());
    all.add(sequence_parallel());
    return all;
  }();
  return registry;
}

}  // namespace shardproof

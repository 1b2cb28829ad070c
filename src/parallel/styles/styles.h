// One function a style, each in a file of its own. Every file says what moves, and when; "stream"
// is what the residual stream is: whole, or with sequence parallel cut by tokens.
#pragma once

#include "parallel/style.h"

namespace shardproof {

Style all_reduce_style();
Style colwise();
Style colwise_gather_output();
Style colwise_loss_parallel();
Style embedding_colwise();
Style embedding_rowwise();
Style ep_dispatch_experts_all_reduce();
Style ep_dispatch_experts_all_to_all();
Style grouped_gemm();
Style local_params();
Style mla_kv_a_proj();
Style moe_identity_expert();
Style moe_tp_experts();
Style packed_colwise();
Style packed_rowwise();
Style replicate_style();
Style replicated_with_grad_allreduce();
Style rowwise();
Style rowwise_split_input();
Style sequence_parallel();

}  // namespace shardproof

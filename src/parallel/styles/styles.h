// The list of styles: one function each, in a file of its own. Every file says what moves, and
// when; "stream" is what the residual stream is: whole, or with sequence parallel cut by tokens. A
// style more is its file and a line here.
#pragma once

#include "parallel/style.h"

#define SHARDPROOF_STYLES(STYLE)        \
  STYLE(all_reduce_style)               \
  STYLE(colwise)                        \
  STYLE(colwise_gather_output)          \
  STYLE(colwise_loss_parallel)          \
  STYLE(embedding_colwise)              \
  STYLE(embedding_rowwise)              \
  STYLE(ep_dispatch_experts_all_reduce) \
  STYLE(ep_dispatch_experts_all_to_all) \
  STYLE(grouped_gemm)                   \
  STYLE(local_params)                   \
  STYLE(mla_kv_a_proj)                  \
  STYLE(moe_identity_expert)            \
  STYLE(moe_tp_experts)                 \
  STYLE(packed_colwise)                 \
  STYLE(packed_rowwise)                 \
  STYLE(replicate_style)                \
  STYLE(replicated_with_grad_allreduce) \
  STYLE(rowwise)                        \
  STYLE(rowwise_split_input)            \
  STYLE(sequence_parallel)

namespace shardproof {

#define SHARDPROOF_DECLARE(name) Style name();
SHARDPROOF_STYLES(SHARDPROOF_DECLARE)
#undef SHARDPROOF_DECLARE

}  // namespace shardproof

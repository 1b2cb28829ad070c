#include "parallel/styles/styles.h"

namespace shardproof {

// colwise of the head: the logits stay cut by vocabulary, and the loss is computed on them as they
// lie (parallel/loss.h). Forward and backward: what colwise does; the loss adds two all-reduces of
// a few numbers a token.
Style colwise_loss_parallel() {
  Style style = colwise();
  style.name = "colwise_loss_parallel";
  return style;
}

}  // namespace shardproof

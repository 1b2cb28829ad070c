#include "parallel/styles/styles.h"

namespace shardproof {

const StyleRegistry& shipped_styles() {
  static const StyleRegistry registry = [] {
    StyleRegistry all;
    all.add(colwise());
    all.add(colwise_gather_output());
    all.add(embedding_rowwise());
    all.add(replicate_style());
    all.add(rowwise());
    return all;
  }();
  return registry;
}

}  // namespace shardproof

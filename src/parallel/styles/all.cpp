#include "parallel/styles/styles.h"

namespace shardproof {

const StyleRegistry& shipped_styles() {
  static const StyleRegistry registry = [] {
    StyleRegistry all;
#define SHARDPROOF_ADD(name) all.add(name());
    SHARDPROOF_STYLES(SHARDPROOF_ADD)
#undef SHARDPROOF_ADD
    return all;
  }();
  return registry;
}

}  // namespace shardproof

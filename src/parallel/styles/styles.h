// One function a style, each in a file of its own.
#pragma once

#include "parallel/style.h"

namespace shardproof {

Style colwise();
Style colwise_gather_output();
Style embedding_rowwise();
Style replicate_style();
Style rowwise();

}  // namespace shardproof

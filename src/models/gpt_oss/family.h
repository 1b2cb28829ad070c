// GPT-OSS as a family: model_type "gpt_oss".
#pragma once

#include "models/family.h"

namespace shardproof {

ModelFamily gpt_oss_family();

}  // namespace shardproof

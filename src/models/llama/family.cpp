#include "models/llama/family.h"

#include "models/decoder/family.h"
#include "models/llama/config.h"
#include "models/llama/plan.h"

namespace shardproof {

ModelFamily llama_family() { return decoder_family("llama", parse_llama_config, llama_plans()); }

}  // namespace shardproof

// Models that this library has no code for, from their names and shapes: a JSON dump that
// reference/plan_dump.py makes of any transformers model, or the headers of safetensors files.
#pragma once

#include "io/checkpoint_index.h"
#include "nn/module.h"
#include "parallel/distributed_config.h"

namespace shardproof {

struct ModelDump {
  enum class Kind { kLinear, kEmbedding, kOther };
  struct DumpedModule {
    std::string path;
    std::string type;  // name of its class, "" where it is not known
    Kind kind = Kind::kOther;
  };
  struct DumpedParameter {
    std::string name;
    std::vector<int64_t> shape;
  };
  std::string model;       // name of its class, or its model_type
  std::string model_type;  // "" where it is not known
  std::string dtype = "float32";
  std::vector<DumpedModule> modules;
  std::vector<DumpedParameter> parameters;     // under all their names
  std::vector<std::vector<std::string>> tied;  // names of one parameter each
  // 0 where the config does not say.
  int64_t heads = 0, key_value_heads = 0, head_dim = 0;
  ModelPlans plans;  // sp: none
};

// Throws InputError (origin, key, problem) for text that is no dump.
ModelDump parse_dump(const std::string& text, const std::string& origin);

// From names and shapes in the files and the sizes in the text of config.json; plans are empty.
// What a module is, is guessed: an embedding by its name, a Linear by a weight of two dims.
ModelDump dump_of_files(const CheckpointFiles& files, const std::string& config_json,
                        const std::string& origin);

// A model whose modules have the parameters, the ports of Linear, Embedding and experts, and no
// forward: calling one is a ContractError. Projections q_proj, k_proj, v_proj and o_proj of the
// sizes that the heads give are cut by heads, as those of nn/attention.h; a parameter under a style
// for packed weights, in the dump's plans or the config's, is two sections of one size. A class
// whose name ends in "Experts" is one of experts. Throws InputError for tied names of several
// shapes.
std::shared_ptr<Module> model_from_dump(const ModelDump& dump, const DistributedConfig& config);

}  // namespace shardproof

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "harness/command.h"
#include "harness/tokenizer.h"
#include "harness/training_run.h"
#include "models/end_tokens.h"
#include "train/generation.h"

namespace shardproof {
namespace {

using Ids = std::vector<std::vector<int64_t>>;

const std::map<std::string, at::ScalarType> kDtypes = {
    {"float32", at::kFloat}, {"bfloat16", at::kBFloat16}, {"float64", at::kDouble}};

struct Options {
  std::string model;
  std::string layout = "single";
  std::vector<std::string> prompt_ids, prompts;
  bool chat = false;
  std::string dtype = "float32";
  bool no_cache = false;
  bool json = false;
  GenerateOptions generate;
  FamilyRegistry families;
};

std::vector<int64_t> parse_ids(const std::string& text) {
  std::vector<int64_t> ids;
  const char* begin = text.data();
  const char* const end = begin + text.size();
  while (true) {
    int64_t id = 0;
    const auto [next, error] = std::from_chars(begin, end, id);
    SP_VALIDATE(error == std::errc() && id >= 0 && (next == end || *next == ','),
                "--prompt-ids '{}': it must be token ids with commas between them, as in 5,17,3",
                text);
    ids.push_back(id);
    if (next == end) return ids;
    begin = next + 1;
  }
}

// Collective: rank 0's on all ranks.
Ids broadcast_ids(Communicator& world, Ids ids) {
  std::vector<int64_t> lengths, flat;
  for (const auto& sequence : ids) {
    lengths.push_back(static_cast<int64_t>(sequence.size()));
    flat.insert(flat.end(), sequence.begin(), sequence.end());
  }
  const auto share = [&](const std::vector<int64_t>& mine) {
    const Site site{"", "prompts", "generate"};
    const at::Tensor count = at::tensor({static_cast<int64_t>(mine.size())});
    world.broadcast(count, 0, site).wait();
    const at::Tensor values = world.rank() == 0 ? at::tensor(mine, at::kLong)
                                                : at::empty({count.item<int64_t>()}, at::kLong);
    world.broadcast(values, 0, site).wait();
    return std::vector<int64_t>(values.const_data_ptr<int64_t>(),
                                values.const_data_ptr<int64_t>() + values.numel());
  };
  lengths = share(lengths);
  flat = share(flat);
  ids.clear();
  auto next = flat.begin();
  for (const int64_t length : lengths) {
    ids.emplace_back(next, next + length);
    next += length;
  }
  return ids;
}

struct Answer {
  Ids prompts;
  Generated generated;
  std::vector<std::string> texts;  // empty where the checkpoint has no tokenizer
  double seconds = 0;              // of generation alone
};

nlohmann::ordered_json to_json(const Options& options, const Answer& answer) {
  nlohmann::ordered_json json = {{"model", options.model},
                                 {"layout", options.layout},
                                 {"dtype", options.dtype},
                                 {"steps", answer.generated.steps},
                                 {"cache_bytes", answer.generated.cache_bytes},
                                 {"seconds", answer.seconds},
                                 {"sequences", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < answer.prompts.size(); ++i) {
    nlohmann::ordered_json item;
    if (!options.prompts.empty()) item["prompt"] = options.prompts[i];
    item["prompt_ids"] = answer.prompts[i];
    item["ids"] = answer.generated.tokens[i];
    if (!answer.texts.empty()) item["text"] = answer.texts[i];
    item["margins"] = answer.generated.margins[i];
    item["ended"] = static_cast<bool>(answer.generated.ended[i]);
    json["sequences"].push_back(item);
  }
  return json;
}

void print(const Options& options, const Answer& answer) {
  for (size_t i = 0; i < answer.prompts.size(); ++i) {
    if (i > 0) std::cout << '\n';
    if (!options.prompts.empty()) std::cout << "prompt: " << options.prompts[i] << '\n';
    std::cout << fmt::format("prompt ids: {}\nids: {}\n", fmt::join(answer.prompts[i], ","),
                             fmt::join(answer.generated.tokens[i], ","));
    if (!answer.texts.empty()) std::cout << "text: " << answer.texts[i] << '\n';
  }
}

int run(const ProgramWorld& world, const Options& options) {
  DistributedConfig config;
  GenerateOptions generation = options.generate;
  generation.use_cache = !options.no_cache;
  Answer answer;
  const std::filesystem::path directory = options.model;
  world.agreed([&] {
    SP_VALIDATE(options.prompts.empty() != options.prompt_ids.empty(),
                "give either --prompt-ids or --prompt, one or more of them");
    SP_VALIDATE(!options.chat || !options.prompts.empty(), "--chat goes with --prompt");
    generation.validate();
    config = config_from_layout(options.layout);
    config.validate();
    const int64_t ranks = config.mesh().world_size();
    SP_VALIDATE(ranks == world.size(),
                "the layout {} takes {} ranks, there are {}: harness/mpirun -n {} shardproof ...",
                config.layout(), ranks, world.size(), ranks);
    SP_VALIDATE(std::filesystem::is_directory(directory), "--model {}: there is no such directory",
                options.model);
    generation.eos_ids = read_end_tokens(directory);
    for (const std::string& text : options.prompt_ids) answer.prompts.push_back(parse_ids(text));
  });
  const CommPtr domain = world.fresh_domain("generate");
  PlacedModel placed;
  world.agreed([&] {
    placed = place_model(domain, {directory, options.families}, kDtypes.at(options.dtype), config);
  });
  const Tokenizer tokenizer(directory);
  const bool first = world.rank() == 0;
  world.agreed([&] {
    if (first && !options.prompts.empty())
      answer.prompts = tokenizer.encode(options.prompts, options.chat);
  });
  answer.prompts = broadcast_ids(*domain, std::move(answer.prompts));
  generation.whole_logits = placed.logits->gatherer();
  const auto begin = std::chrono::steady_clock::now();
  world.agreed([&] {
    answer.generated = generate(*placed.causal_lm.model, answer.prompts, generation, *domain);
  });
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  world.agreed([&] {
    if (first && std::filesystem::exists(directory / "tokenizer.json"))
      answer.texts = tokenizer.decode(answer.generated.tokens);
  });
  if (!first) return 0;
  if (options.json) {
    std::cout << to_json(options, answer).dump(1) << '\n';
  } else {
    print(options, answer);
  }
  return 0;
}

}  // namespace

CommandBody command_generate(CLI::App& app, const FamilyRegistry& families) {
  auto options = std::make_shared<Options>();
  options->families = families;
  GenerateOptions& generate = options->generate;
  app.add_option("--model", options->model, "directory of a checkpoint")->required();
  app.add_option("--layout", options->layout, "such as fsdp=2,tp=2, on as many ranks")
      ->capture_default_str();
  app.add_option("--prompt-ids", options->prompt_ids, "token ids, 5,17,3; several: one batch");
  app.add_option("--prompt", options->prompts, "text, through the checkpoint's tokenizer");
  app.add_flag("--chat", options->chat, "each text through the checkpoint's chat template");
  app.add_option("--max-new-tokens", generate.max_new_tokens, "for each prompt")
      ->capture_default_str();
  std::vector<std::string> dtypes;
  for (const auto& [name, dtype] : kDtypes) dtypes.push_back(name);
  app.add_option("--dtype", options->dtype, "what is computed in")
      ->check(CLI::IsMember(dtypes))
      ->capture_default_str();
  app.add_option("--temperature", generate.sampling.temperature, "0: greedy")
      ->capture_default_str();
  app.add_option("--top-k", generate.sampling.top_k, "draw from the k best; 0: from all")
      ->capture_default_str();
  app.add_option("--top-p", generate.sampling.top_p, "draw from the best of this probability")
      ->capture_default_str();
  app.add_option("--seed", generate.sampling.seed, "of the draws")->capture_default_str();
  app.add_flag("--no-cache", options->no_cache, "compute all tokens again at every step");
  app.add_flag("--json", options->json, "as JSON");
  return [options](const ProgramWorld& world) { return run(world, *options); };
}

}  // namespace shardproof

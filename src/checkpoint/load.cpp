#include "checkpoint/load.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "checkpoint/choose_form.h"
#include "checkpoint/pieces.h"
#include "checkpoint/read_piece.h"
#include "io/quote.h"

namespace shardproof {
namespace {

void check_all_taken(const std::unordered_set<std::string>& taken, const CheckpointFiles& files,
                     const WeightMap& map) {
  std::vector<std::string> extra;
  for (const std::string& name : files.names())
    if (!taken.contains(name) && !is_ignored(map, name)) extra.push_back(name);
  SP_VALIDATE(
      extra.empty(),
      "{}: the tensor {}{} belongs to no parameter of the model; is config.json that of this "
      "checkpoint?",
      files.file_of(extra.front()).path().string(), quote(extra.front()),
      extra.size() > 1 ? fmt::format(" (and {} more)", extra.size() - 1) : "");
}

struct Source {
  ParamPtr parameter;
  BoundWeight weight;
};

// Everything is checked before anything is read.
std::vector<Source> checked_sources(Module& model, const CheckpointFiles& files,
                                    const WeightMap& map) {
  std::vector<Source> sources;
  std::unordered_set<std::string> taken;
  for (const ParamPtr& parameter : model.all_parameters()) {
    std::vector<BoundWeight> found = found_forms(*parameter, files, map);
    for (BoundWeight& form : found) {
      check_against_files(form, files);
      for (std::string& tensor : tensor_names(form)) taken.insert(std::move(tensor));
    }
    sources.push_back({parameter, std::move(found.front())});
  }
  check_all_taken(taken, files, map);
  return sources;
}

int64_t bytes_of(const Parameter& parameter) {
  return static_cast<int64_t>(parameter.kept().nbytes());
}

}  // namespace

void check_parameters(Module& model, const CheckpointFiles& files, const WeightMap& map) {
  checked_sources(model, files, map);
}

void load_parameters(Module& model, const CheckpointFiles& files, const WeightMap& map,
                     const LoadProgress& progress) {
  for (const ParamPtr& parameter : model.all_parameters()) {
    SP_EXPECT(parameter->placed(), "{} is not placed: parallelize the model or place_whole() first",
              parameter->name());
  }
  const std::vector<Source> sources = checked_sources(model, files, map);
  int64_t total = 0;
  for (const Source& source : sources) total += bytes_of(*source.parameter);
  int64_t done = 0;
  PieceReader reader(files);
  for (const Source& source : sources) {
    const Parameter& parameter = *source.parameter;
    for (const Piece& piece : pieces_of(source.weight, parameter.kept_region()))
      reader.read(piece, parameter.kept());
    done += bytes_of(parameter);
    if (progress) progress(done, total);
  }
}

}  // namespace shardproof

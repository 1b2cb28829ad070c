// Where a checkpoint keeps the parameters of a model, as data that a model family states.
//
// A rule names parameters by a pattern and says what each is made of, in the shapes of the model:
// an expression over tensors of the checkpoint. Several forms may be given, for the forms that
// checkpoints come in; the first whose tensors are all there is taken. A parameter without a rule
// is the tensor of its own name.
//
// In a rule's pattern `*` stands for one number (see pattern_matches). In names of tensors the `*`s
// take these numbers in order, and one more, inside stack(), is the position in the stack:
//
//   {"layers.*.experts.gate_up",
//    {tensor("layers.*.experts.gate_up"),
//     concatenate(1, {stack(tensor("layers.*.experts.*.gate")),
//                     stack(tensor("layers.*.experts.*.up"))})}}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardproof {

// What a parameter, or a part of it, is made of. Made by the functions below.
struct WeightSource {
  enum class Kind { kTensor, kMxfp4, kStack, kConcatenate, kInterleave, kSplit, kTranspose };
  Kind kind = Kind::kTensor;
  std::vector<std::string> tensors = {};  // kTensor: one; kMxfp4: blocks and scales
  std::vector<WeightSource> parts = {};   // what it is made of; none for tensors
  int64_t dim = 0;                        // kConcatenate, kInterleave, kSplit
  std::vector<int64_t> split_sizes = {};  // kSplit
  int64_t split_index = 0;
};

namespace weight {

// A tensor as it is.
WeightSource tensor(std::string name);
// The values of an MXFP4 pair: blocks [..., rows, n / 32, 16] and scales [..., rows, n / 32] are
// [..., rows, n].
WeightSource mxfp4(std::string blocks, std::string scales);
// The same for names `name` + "_blocks" and `name` + "_scales".
WeightSource mxfp4(const std::string& name);
// One `each` for every position of a new first dim, as many as the model has there.
WeightSource stack(WeightSource each);
// One behind the other along `dim`; their sizes there are those in the files.
WeightSource concatenate(int64_t dim, std::vector<WeightSource> parts);
// In turns along `dim`: parts[0][0], parts[1][0], parts[0][1], ...
WeightSource interleave(int64_t dim, std::vector<WeightSource> parts);
// Part `index` of `whole`, which along `dim` is made of parts of these sizes.
WeightSource split(int64_t dim, std::vector<int64_t> sizes, int64_t index, WeightSource whole);
// The last two dims exchanged.
WeightSource transpose(WeightSource source);

}  // namespace weight

struct WeightRule {
  std::string parameter;  // pattern
  std::vector<WeightSource> forms;
};

struct WeightMap {
  std::vector<WeightRule> rules;  // the first that matches a name holds for it
  // Tensors that the model does not have and that may be there: patterns, where a last component
  // `**` stands for all below.
  std::vector<std::string> ignored;
};

}  // namespace shardproof

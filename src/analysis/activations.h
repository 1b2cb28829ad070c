// What a forward keeps for its backward, module by module, without running it: an estimate, from
// what each type of module here computes and what autograd saves of it. Pure.
//
// Rules, in elements of the values as the rank holds them (a value that several siblings read is
// one).
//
//   Linear: its input.
//
//   RmsNorm: its input in the type it computes in (float32, or float64), and the normed value.
//
//   Attention: queries and keys after rotation, values (packed: the packed projection and the first
//   two); the attended value is the input of o_proj. No matrix of scores.
//
//   GatedMlp: gate, activated gate and up; their product is the input of down_proj.
//
//   PackedGatedMlp: gate and up, activated gate.
//
//   Embedding: two indices a token.
//
//   Other leaves: their inputs, as far as links state their width.
//
// Too low by half and more for mixtures of experts and latent attention, whose inner values have no
// rule yet. Not counted: masks (a windowed layer keeps one of length x length), tables of rotary
// embedding.
#pragma once

#include "analysis/state.h"
#include "analysis/traffic.h"

namespace shardproof {

struct SavedBytes {
  std::string module;
  int64_t bytes = 0;
};

struct Activations {
  std::vector<SavedBytes> saved;  // by module, parents first, without zeros
  int64_t logits = 0;             // the model's output, and what the loss saves of it
  int64_t loss_work = 0;          // what the loss's backward needs besides
  int64_t total_saved() const;    // of all modules
};

Activations activations_of(Module& model, const ResolvedPlan& plan, const BatchShape& batch,
                           int64_t rank, const ItemSizes& sizes = {});

// Bytes of keys and values of `batch.length` tokens in all caches of the rank. Exact for modules of
// the types Attention and LatentAttention (its local heads' keys and values); others have none.
int64_t cache_bytes(Module& model, const ResolvedPlan& plan, const BatchShape& batch, int64_t rank,
                    const ItemSizes& sizes = {});

}  // namespace shardproof

// Reading pieces of a parameter from their files into their places, in little memory.
#pragma once

#include <ATen/core/Tensor.h>

#include "checkpoint/pieces.h"

namespace shardproof {

// Small enough to stay in a core's own cache between being read and being placed.
inline constexpr int64_t kLoadSlabBytes = 1 << 19;
// Memory that a PieceReader needs at most beside the tensor it fills: a slab as in the file, one of
// decoded values, and the 4 MiB through which SafetensorsFile reads gaps.
inline constexpr int64_t kLoadScratchBytes = 2 * kLoadSlabBytes + (4 << 20);

// Reads pieces one after the other; keeps its scratch memory for the next one. Not for several
// threads.
class PieceReader {
 public:
  // `files` must outlive it.
  explicit PieceReader(const CheckpointFiles& files) : files_(files) {}

  // Reads the box of `piece` and converts it into its place in `local`, the local tensor of the
  // region that the piece is of: of any dtype, strides and device. Straight into place where bytes
  // lie there as in the file, else in slabs. Only the bytes of the box are read (of MXFP4: whole
  // blocks of 16 bytes; see also SafetensorsFile::read_box). Not recorded by autograd.
  void read(const Piece& piece, const at::Tensor& local);

 private:
  void read_plain(const Piece& piece, const at::Tensor& place);
  void read_mxfp4(const Piece& piece, const at::Tensor& place);

  const CheckpointFiles& files_;
  at::Tensor stored_;  // bytes of a slab as in the file
  at::Tensor values_;  // and of decoded ones
};

}  // namespace shardproof

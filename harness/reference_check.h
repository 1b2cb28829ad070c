// The unsharded run compared with what transformers computed on the same checkpoint and batch
// (reference.safetensors in the model's folder; reference/ documents its names).
#pragma once

#include "harness/comparison.h"
#include "harness/training_run.h"

namespace shardproof {

// In float64, against a transformers that is float64 throughout: error at most 1e-10 of the norm.
// Every gradient must have its reference and every reference its value. `self`: a world of one.
std::vector<Row> check_reference_float64(const CommPtr& self, const ModelSource& model);

// In float32, with stock transformers in float32 as the measure, against the float64 truth. Tensors
// of 64 elements or more: error at most 4 * max(stock's error, eps * norm). Scalars and smaller
// tensors, by their norm, at most 4 * max(stock's error, RMS of stock's relative errors * norm, eps
// * norm): one error that is near zero by chance proves nothing.
std::vector<Row> check_reference_float32(const CommPtr& self, const ModelSource& model);

}  // namespace shardproof

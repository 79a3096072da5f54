#pragma once
// Cuts a model into chunks for a pipeline: a sequence of graphs, each of which takes outputs of the one before. Cuts
// lie between two iterations of the model's repeats. Nodes outside of repeats go where they are needed:
//
// * nodes that depend on a repeat's result follow it: the last norm, the head, the loss
// * nodes that depend on parameters, but on no repeat (embeddings, position biases), run in the first chunk that reads
//   them, which passes the result on
// * nodes that depend on neither (masks, positions, constants), and conversions of a parameter, run again in every
//   chunk that reads them. So tokens, labels and segments are inputs of every chunk that needs them
//
//   gpt, 4 layers in 2 chunks     tokens → embed → layers 0, 1 ─ between.0.0 → layers 2, 3 → norm → head, labels → loss
//
// A value that a later chunk reads (the output of a T5 encoder) passes through the chunks between. A parameter stacked
// over layers is cut to the chunk's layers, "blocks.{layer+2}.attn.q" (layer_names.h). A tied parameter is in every
// chunk that reads it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

struct Chunk {
  // Inputs: parameters and model inputs that this chunk reads, in the model's order, then the values from the chunk
  // before. Outputs: the values for the next chunk; in the last chunk the model's outputs.
  Graph graph;
  int from_before = 0;  // values from the chunk before; k is "between.<chunk - 1>.<k>", here an input, there an output
};

// True for the name of a value between chunks.
bool is_between(std::string_view name);

// The iterations of each repeat of a graph, in order; and their sum.
std::vector<std::int64_t> layers_of_repeats(const Graph& graph);
std::int64_t num_layers(const Graph& graph);

// `layers`: the number of iterations in each chunk, counted through all repeats in sequence.
// Errors: Failure(invalid) when they do not add up to num_layers, or a chunk has none; Failure(unsupported) when a
// later node reads the stacked outputs of a repeat that is cut, or a parameter of layers is not read slice by slice.
std::vector<Chunk> cut_into_chunks(const Graph& graph, std::span<const std::int64_t> layers);

}  // namespace systole

#pragma once
// A model cut into chunks for a pipeline: graphs that follow each other, of which each takes what the one before hands
// on. The cut goes through the model's repeats, between two iterations; what stands outside of them goes where it is
// needed:
//
// * what depends on a repeat's result comes behind it: the last norm, the head, the loss
// * what depends on parameters, but on no repeat (embeddings, biases of positions), is done in the first chunk that
//   reads it, and handed on
// * what depends on neither (masks, positions, constants), and what only converts a parameter, is done again in every
//   chunk that reads it; so tokens, labels and segments are inputs of each chunk that asks for them
//
//   gpt, 4 layers in 2 chunks     tokens → embed → layers 0, 1 ─ between.0.0 → layers 2, 3 → norm → head, labels → loss
//
// A value that a later chunk reads (what a T5's encoder gives) passes through the chunks between. A parameter of layers
// becomes one of the chunk's layers, "blocks.{layer+2}.attn.q" (layer_names.h); one that two chunks read, a tie, is in
// both.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/ir.h"

namespace systole {

struct Chunk {
  // Inputs: parameters and the model's inputs that this chunk reads, in the model's order, then what comes from before.
  // Outputs: what the next chunk gets; of the last chunk those of the model.
  Graph graph;
  int from_before = 0;  // how many; the k-th is the input "between.<chunk - 1>.<k>", and the output of the chunk before
};

// What goes from chunk to chunk, by its name.
bool is_between(std::string_view name);

// Iterations of each repeat of a graph, in order; of all.
std::vector<std::int64_t> layers_of_repeats(const Graph& graph);
std::int64_t num_layers(const Graph& graph);

// `layers`: how many iterations each chunk has, of all repeats one after the other.
// Errors: Failure(invalid) when they do not add up to num_layers, or a chunk has none; Failure(unsupported) when a
// later part reads what a repeat stacks, or a parameter of layers in another way than slice by slice.
std::vector<Chunk> cut_into_chunks(const Graph& graph, std::span<const std::int64_t> layers);

}  // namespace systole

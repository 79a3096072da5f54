#include "predict/plan/pieces.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "describe/program/live.h"
#include "predict/perf/device_memory.h"
#include "predict/plan/piece_numbers.h"

namespace systole {
namespace {

bool alike(const FunctionRecord& a, const FunctionRecord& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const StretchRecord &x = a[i], &y = b[i];
    if (x.in_layers != y.in_layers || x.products.size() != y.products.size() ||
        x.attention.size() != y.attention.size() || x.messages.size() != y.messages.size())
      return false;
    for (std::size_t k = 0; k < x.attention.size(); ++k) {
      const AttentionRecord &p = x.attention[k], &q = y.attention[k];
      if (p.backward != q.backward || p.shape.keys != q.shape.keys || p.shape.head != q.shape.head ||
          p.shape.causal != q.shape.causal)
        return false;
    }
    for (std::size_t k = 0; k < x.messages.size(); ++k) {
      MessageRecord p = x.messages[k], q = y.messages[k];
      p.bytes = q.bytes = 0;
      if (p != q) return false;
    }
  }
  return true;
}

bool alike(const std::vector<HandoverRecord>& a, const std::vector<HandoverRecord>& b) {
  return std::ranges::equal(
      a, b, [](const HandoverRecord& p, const HandoverRecord& q) { return p.copied == q.copied && p.axis == q.axis; });
}

// The chunk of a residual or function by its name: "residual.3.7" or "forward.7"; nothing without stages.
std::optional<std::int64_t> chunk_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  std::int64_t chunk = 0;
  const auto [end, problem] = std::from_chars(name.data() + dot + 1, name.data() + name.size(), chunk);
  if (problem != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return chunk;
}

void add_dims(const Graph& graph, std::vector<std::int64_t>& dims) {
  for (const GraphNode& node : graph.nodes()) {
    for (const Graph& region : node.regions) add_dims(region, dims);
    for (const ValueId id : node.results) {
      const Type& type = graph.type(id);
      for (int dim = 0; dim < type.ndim(); ++dim) dims.push_back(type.size(dim));
    }
  }
}

}  // namespace

bool alike(const ChunkPiece& a, const ChunkPiece& b) {
  return alike(a.work.forward, b.work.forward) && alike(a.work.backward, b.work.backward) &&
         alike(a.work.sent, b.work.sent) && alike(a.work.sent_back, b.work.sent_back);
}

bool alike(const AfterPiece& a, const AfterPiece& b) { return alike(a.work, b.work) && alike(a.ties, b.ties); }

StagePieces pieces_of(const Program& program, const StageRecord& work, const PipelineStrategy& pipeline,
                      std::span<const std::int64_t> layers) {
  StagePieces stage;
  stage.after.work = work.after;
  stage.after.ties = work.ties;
  for (const ChunkRecord& chunk : work.chunks) stage.chunks.push_back({chunk, 0, 0, 0, {}, {}, 0});
  // The stage's chunk to which something named for a chunk of the model belongs.
  const auto own = [&](std::string_view name) {
    return pipeline.num_chunks() == 1 ? 0 : static_cast<std::size_t>(chunk_of(name).value() / pipeline.stages);
  };
  for (const Function& function : program.functions) {
    if (!function.name.starts_with("forward") && !function.name.starts_with("backward")) continue;
    ChunkPiece& chunk = stage.chunks[own(function.name)];
    add_dims(function.graph, chunk.dims);
    if (!function.name.starts_with("backward")) continue;
    chunk.live = live_bytes(function);
    chunk.live_in_layers = most_live_in_repeats(function);
  }
  const MemoryParts besides = placeless_memory(program, {});
  stage.after.copies = besides.copies.count();
  stage.chunks.back().logits = besides.logits;
  for (const ProgramValue& value : program.values) {
    const std::int64_t bytes = value.type.bytes().count();
    switch (value.residence) {
      case Residence::parameter: stage.after.parameters += bytes; break;
      case Residence::state: stage.after.state += bytes; break;
      case Residence::gradient:
        if (value.name.starts_with("gradient/"))
          stage.after.gradients += bytes;
        else
          stage.after.reduced += bytes + program.target.alignment;
        break;
      case Residence::residual: {
        if (!value.name.starts_with("residual.")) break;  // transfers between chunks
        const std::size_t c = own(value.name);
        const bool stacked = value.type.ndim() > 0 && value.type.name(0) == "layer";
        (stacked ? stage.chunks[c].kept_by_layer : stage.chunks[c].kept) += stacked ? bytes / layers[c] : bytes;
        break;
      }
      default: break;
    }
  }
  return stage;
}

namespace {

bool same(MessageRecord a, const MessageRecord& b) {
  a.starts = b.starts;  // whether it goes along with another depends on the stage
  return a == b;
}
bool same(const HandoverRecord& a, const HandoverRecord& b) {
  return a.axis == b.axis && a.bytes == b.bytes && a.copied == b.copied;
}

// The chunk that each message comes from. Either all messages of all chunks are there, in any order (the update handles
// decayed parameters first, then the others), or each message is shared by all chunks.
template <typename Message>
Result<AfterChunks::Sources> sources_of(const std::vector<Message>& messages,
                                        const std::vector<const std::vector<Message>*>& alone) {
  AfterChunks::Sources sources;
  std::size_t all = 0;
  bool shared = true;
  for (const std::vector<Message>* one : alone) {
    all += one->size();
    shared = shared && one->size() == messages.size();
  }
  if (messages.size() != all && !shared) return unlike("messages of chunks that are not a stage's");
  std::vector<std::vector<bool>> taken;
  for (const std::vector<Message>* one : alone) taken.emplace_back(one->size());
  for (std::size_t m = 0; m < messages.size(); ++m) {
    const auto from = [&]() -> std::optional<AfterChunks::Source> {
      for (std::size_t c = 0; c < alone.size(); ++c) {
        for (std::size_t k = messages.size() == all ? 0 : m; k < alone[c]->size(); ++k)
          if (!taken[c][k] && same((*alone[c])[k], messages[m])) return AfterChunks::Source{c, k};
      }
      return std::nullopt;
    }();
    if (!from) return unlike("messages of chunks that are not a stage's");
    taken[from->chunk][from->message] = true;
    sources.push_back(*from);
  }
  return sources;
}

// Visits all numbers but those of messages.
template <typename Visit>
void visit_sums(AfterPiece& piece, Visit visit) {
  for (StretchRecord& s : piece.work)
    for (auto* number : {&s.moved, &s.kernels, &s.converted, &s.converting, &s.updated, &s.summed, &s.summing, &s.flops,
                         &s.model_flops})
      visit(*number);
  for (auto* number : {&piece.parameters, &piece.state, &piece.gradients, &piece.reduced, &piece.copies})
    visit(*number);
}

const StretchRecord* find(const AfterPiece& piece, std::string_view function) {
  for (const StretchRecord& s : piece.work)
    if (s.function == function) return &s;
  return nullptr;
}

// Adds the functions of `like`, in its order; a function in which the chunk has no work is empty.
AfterPiece in_functions_of(const AfterPiece& like, AfterPiece piece) {
  FunctionRecord all;
  for (const StretchRecord& s : like.work) {
    const StretchRecord* own = find(piece, s.function);
    StretchRecord none;
    none.function = s.function;
    all.push_back(own ? *own : none);
  }
  piece.work = std::move(all);
  return piece;
}
std::vector<AfterPiece> in_functions_of(const AfterPiece& like, const std::vector<AfterPiece>& alone) {
  std::vector<AfterPiece> all;
  for (const AfterPiece& one : alone) all.push_back(in_functions_of(like, one));
  return all;
}

std::vector<std::int64_t> sums_of(const std::vector<AfterPiece>& alone) {
  std::vector<std::int64_t> sums;
  for (AfterPiece one : alone) {
    std::size_t n = 0;
    visit_sums(one, [&](std::int64_t number) {
      if (n == sums.size()) sums.push_back(0);
      sums[n++] += number;
    });
  }
  return sums;
}

// The messages of function `f`, by chunk.
std::vector<const std::vector<MessageRecord>*> messages_of(const std::vector<AfterPiece>& alone, std::size_t f) {
  std::vector<const std::vector<MessageRecord>*> messages;
  for (const AfterPiece& one : alone) messages.push_back(&one.work[f].messages);
  return messages;
}
std::vector<const std::vector<HandoverRecord>*> ties_of(const std::vector<AfterPiece>& alone) {
  std::vector<const std::vector<HandoverRecord>*> ties;
  for (const AfterPiece& one : alone) ties.push_back(&one.ties);
  return ties;
}

template <typename Message>
void set_bytes(std::vector<Message>& messages, const AfterChunks::Sources& sources,
               const std::vector<const std::vector<Message>*>& alone) {
  for (std::size_t m = 0; m < messages.size(); ++m)
    messages[m].bytes = (*alone[sources[m].chunk])[sources[m].message].bytes;
}

// Whether the work after chunks has only sums and messages, and each function once.
bool only_sums(const AfterPiece& piece) {
  return std::ranges::all_of(piece.work, [&](const StretchRecord& s) {
    return !s.in_layers && s.times == 1 && s.products.empty() && s.attention.empty() && find(piece, s.function) == &s;
  });
}

}  // namespace

Result<AfterChunks> AfterChunks::of(AfterPiece recorded, const std::vector<AfterPiece>& alone) {
  AfterChunks after;
  if (!only_sums(recorded)) return unlike("other functions after several chunks");
  for (const AfterPiece& one : alone) {
    const bool known =
        std::ranges::all_of(one.work, [&](const StretchRecord& s) { return find(recorded, s.function) != nullptr; });
    if (!only_sums(one) || !known) return unlike("other functions after several chunks");
  }
  const auto same_function = [](const StretchRecord& a, const StretchRecord& b) { return a.function == b.function; };
  for (const AfterPiece& one : alone)
    after.alike_ = after.alike_ && std::ranges::equal(one.work, recorded.work, same_function);
  const std::vector<AfterPiece> parts = in_functions_of(recorded, alone);
  for (std::size_t f = 0; f < recorded.work.size(); ++f)
    after.messages_.push_back(TRY(sources_of(recorded.work[f].messages, messages_of(parts, f))));
  after.ties_ = TRY(sources_of(recorded.ties, ties_of(parts)));
  const std::vector<std::int64_t> sums = sums_of(parts);
  visit_sums(recorded,
             [&, n = std::size_t{0}](std::int64_t number) mutable { after.constants_.push_back(number - sums[n++]); });
  after.recorded_ = std::move(recorded);
  return after;
}

AfterPiece AfterChunks::at(const std::vector<AfterPiece>& alone) const {
  AfterPiece piece = recorded_;
  const std::vector<AfterPiece> made = alike_ ? std::vector<AfterPiece>() : in_functions_of(recorded_, alone);
  const std::vector<AfterPiece>& parts = alike_ ? alone : made;
  for (std::size_t f = 0; f < piece.work.size(); ++f)
    set_bytes(piece.work[f].messages, messages_[f], messages_of(parts, f));
  set_bytes(piece.ties, ties_, ties_of(parts));
  const std::vector<std::int64_t> sums = sums_of(parts);
  visit_sums(piece, [&, n = std::size_t{0}](std::int64_t& number) mutable {
    number = sums[n] + constants_[n];
    ++n;
  });
  return piece;
}

}  // namespace systole

#include "predict/plan/stage_family.h"

#include <algorithm>
#include <charconv>

#include "predict/perf/device_memory.h"

namespace systole {
namespace {

// All numbers of a record that sizes change, in an order that its structure alone gives.
template <typename Function, typename Visit>
void visit_function(Function& function, Visit& visit) {
  for (auto& stretch : function) {
    for (auto& dims : stretch.products) {
      visit(dims.batch);
      visit(dims.rows);
      visit(dims.columns);
      visit(dims.summed);
    }
    for (auto& attention : stretch.attention) {
      visit(attention.shape.rows);
      visit(attention.shape.queries);
      visit(attention.shape.keys_of_row);
    }
    for (auto* number : {&stretch.quantised, &stretch.moved, &stretch.kernels, &stretch.converted, &stretch.converting,
                         &stretch.updated, &stretch.flops, &stretch.model_flops})
      visit(*number);
    for (auto& message : stretch.messages) visit(message.bytes);
  }
}

template <typename Chunk, typename Memory, typename Visit>
void visit_chunk(Chunk& chunk, Memory& memory, Visit& visit) {
  visit_function(chunk.forward, visit);
  visit_function(chunk.backward, visit);
  for (auto& handover : chunk.sent) visit(handover.bytes);
  for (auto& handover : chunk.sent_back) visit(handover.bytes);
  visit(memory.of_layer);
  visit(memory.once);
}

template <typename Stage, typename Memory, typename Visit>
void visit_after(Stage& stage, Memory& memory, Visit& visit) {
  visit_function(stage.after, visit);
  for (auto& tie : stage.ties) visit(tie.bytes);
  visit(memory.parameters);
  visit(memory.state);
  visit(memory.gradients);
  visit(memory.copies);
  visit(memory.logits);
}

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

bool alike(const StageRecord& a, const StageRecord& b) {
  if (a.chunks.size() != b.chunks.size() || a.ties.size() != b.ties.size()) return false;
  for (std::size_t c = 0; c < a.chunks.size(); ++c) {
    const ChunkRecord &x = a.chunks[c], &y = b.chunks[c];
    const auto same = [](const HandoverRecord& p, const HandoverRecord& q) { return p.copied == q.copied; };
    if (!alike(x.forward, y.forward) || !alike(x.backward, y.backward) || !std::ranges::equal(x.sent, y.sent, same) ||
        !std::ranges::equal(x.sent_back, y.sent_back, same))
      return false;
  }
  return alike(a.after, b.after);
}

Error unlike(std::string_view what) { return error(ErrorKind::unsupported, "cannot be composed: {}", what); }

// How often a body runs goes with the chunk's layers.
Status set_times(FunctionRecord& function, std::int64_t from, std::int64_t to) {
  for (StretchRecord& stretch : function) {
    if (!stretch.in_layers) continue;
    if (stretch.times % from != 0) return unlike("a repeat whose count the layers do not divide");
    stretch.times = stretch.times / from * to;
  }
  return {};
}

// The chunk whose residual it is, "residual.3.7"; nothing without stages.
std::optional<std::int64_t> chunk_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  std::int64_t chunk = 0;
  const auto [end, problem] = std::from_chars(name.data() + dot + 1, name.data() + name.size(), chunk);
  if (problem != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return chunk;
}

}  // namespace

StageMemory stage_memory(const Program& program, const PipelineStrategy& pipeline,
                         std::span<const std::int64_t> layers) {
  StageMemory memory;
  memory.chunks.resize(layers.size());
  const MemoryParts besides = placeless_memory(program, {});
  memory.copies = besides.copies.count();
  memory.logits = besides.logits;
  for (const ProgramValue& value : program.values) {
    const std::int64_t bytes = value.type.bytes().count();
    switch (value.residence) {
      case Residence::parameter: memory.parameters += bytes; break;
      case Residence::state: memory.state += bytes; break;
      case Residence::gradient: memory.gradients += value.name.starts_with("gradient/") ? bytes : 0; break;
      case Residence::residual: {
        if (!value.name.starts_with("residual.")) break;  // handed on between chunks
        const std::size_t c =
            pipeline.num_chunks() == 1 ? 0 : static_cast<std::size_t>(chunk_of(value.name).value() / pipeline.stages);
        const bool stacked = value.type.ndim() > 0 && value.type.name(0) == "layer";
        (stacked ? memory.chunks[c].of_layer : memory.chunks[c].once) += stacked ? bytes / layers[c] : bytes;
        break;
      }
      default: break;
    }
  }
  return memory;
}

Result<StageFamily::Counts> StageFamily::Counts::through(const std::vector<std::vector<std::int64_t>>& values,
                                                         const std::vector<std::vector<std::int64_t>>& sizes,
                                                         std::int64_t fsdp, std::int64_t other_fsdp) {
  const std::size_t terms = sizes.size();
  Counts counts;
  counts.terms_ = terms;
  // At one fsdp, of the n-th count: what it is at 0, and what one more of each size adds.
  const auto plane = [&](std::size_t n, std::size_t first) -> std::optional<std::vector<std::int64_t>> {
    std::vector<std::int64_t> coefficients(terms, 0);
    coefficients[0] = values[first][n];
    for (std::size_t k = 1; k < terms; ++k) {
      const std::int64_t more = values[first + k][n] - values[first][n], by = sizes[k][k - 1] - sizes[0][k - 1];
      if (more == 0) continue;
      if (by == 0 || more % by != 0) return std::nullopt;
      coefficients[k] = more / by;
      coefficients[0] -= coefficients[k] * sizes[0][k - 1];
    }
    return coefficients;
  };
  for (std::size_t n = 0; n < values[0].size(); ++n) {
    const auto here = plane(n, 0), there = values.size() > terms ? plane(n, terms) : here;
    if (!here || !there) return unlike("a count that layers do not divide");
    for (std::size_t k = 0; k < terms; ++k) {
      // here = whole + part / fsdp, there = whole + part / other_fsdp
      const std::int64_t less = (*here)[k] - (*there)[k];
      std::int64_t part = 0;
      if (less != 0) part = less * fsdp * other_fsdp / (other_fsdp - fsdp);
      if (part * (other_fsdp - fsdp) != less * fsdp * other_fsdp || part % fsdp != 0)
        return unlike("a count that fsdp does not divide");
      counts.whole_.push_back((*here)[k] - part / fsdp);
      counts.part_.push_back(part);
    }
  }
  return counts;
}

std::optional<std::int64_t> StageFamily::Counts::at(std::size_t n, std::span<const std::int64_t> u,
                                                    std::int64_t fsdp) const {
  const std::int64_t *whole = whole_.data() + n * terms_, *part = part_.data() + n * terms_;
  std::int64_t value = whole[0], cut = part[0];
  for (std::size_t k = 1; k < terms_; ++k) {
    value += whole[k] * u[k - 1];
    cut += part[k] * u[k - 1];
  }
  if (cut % fsdp != 0) return std::nullopt;
  return value + cut / fsdp;
}

Result<StageFamily> StageFamily::of(std::span<const Corner> corners, bool staged) {
  StageFamily family;
  family.first_ = corners[0];
  family.staged_ = staged;
  for (const Corner& corner : corners)
    if (!alike(corner.work, corners[0].work)) return unlike("other kernels at other sizes");
  const StageSizes& low = corners[0].sizes;
  const std::size_t chunks = low.layers.size(), of_one_fsdp = staged ? 1 + chunks : 1;
  // The counts at some of the corners, by what is visited of each; `which` of those with one fsdp.
  const auto counts = [&](const std::vector<std::size_t>& which, const std::vector<std::vector<std::int64_t>>& sizes,
                          const auto& visit) {
    std::vector<std::vector<std::int64_t>> values;
    for (std::size_t first = 0; first < corners.size(); first += of_one_fsdp) {
      for (const std::size_t k : which) {
        values.emplace_back();
        const auto add = [&](std::int64_t number) { values.back().push_back(number); };
        visit(corners[first + k], add);
      }
    }
    return Counts::through(values, sizes, low.fsdp, corners.back().sizes.fsdp);
  };
  std::vector<std::size_t> of_layers{0};
  std::vector<std::vector<std::int64_t>> layers{staged ? low.layers : std::vector<std::int64_t>()};
  for (std::size_t c = 0; c < chunks; ++c) {
    std::vector<std::size_t> which{0};
    std::vector<std::vector<std::int64_t>> sizes{{}};
    if (staged) {
      const std::vector<std::int64_t>& other = corners[1 + c].sizes.layers;
      which.push_back(1 + c);
      sizes = {{low.layers[c]}, {other[c]}};
      of_layers.push_back(1 + c);
      layers.push_back(other);
    }
    family.chunks_.push_back(TRY(counts(which, sizes, [&](const Corner& corner, const auto& add) {
      visit_chunk(corner.work.chunks[c], corner.memory.chunks[c], add);
    })));
  }
  family.after_ = TRY(counts(
      of_layers, layers, [&](const Corner& corner, const auto& add) { visit_after(corner.work, corner.memory, add); }));
  return family;
}

Result<StageFamily::Stage> StageFamily::at(const StageSizes& sizes) const {
  Stage stage{first_.work, first_.memory};
  bool whole = true;
  const auto set = [&](const Counts& counts, std::span<const std::int64_t> u) {
    return [&, u, n = std::size_t{0}](std::int64_t& number) mutable {
      const std::optional<std::int64_t> value = counts.at(n++, u, sizes.fsdp);
      whole = whole && value.has_value();
      number = value.value_or(0);
    };
  };
  for (std::size_t c = 0; c < sizes.layers.size(); ++c) {
    ChunkRecord& chunk = stage.work.chunks[c];
    auto visit = set(chunks_[c], {&sizes.layers[c], 1});
    visit_chunk(chunk, stage.memory.chunks[c], visit);
    TRY(set_times(chunk.forward, first_.sizes.layers[c], sizes.layers[c]));
    TRY(set_times(chunk.backward, first_.sizes.layers[c], sizes.layers[c]));
  }
  auto visit = set(after_, sizes.layers);
  visit_after(stage.work, stage.memory, visit);
  if (!whole) return unlike("a part of something is no whole number");
  return stage;
}

}  // namespace systole

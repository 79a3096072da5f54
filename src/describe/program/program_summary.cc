#include "describe/program/program_summary.h"

#include <algorithm>

#include "describe/program/collectives_of.h"

namespace systole {
namespace {

// Equal collectives of a function, counted together.
struct CollectiveLine {
  CollectiveUse use;
  std::int64_t times = 0;
};

bool alike(const CollectiveUse& use, const CollectiveUse& other) {
  const CollectiveCall &a = use.call, &b = other.call;
  return use.overlap == other.overlap && a.kind == b.kind && a.axis == b.axis && a.dtype == b.dtype &&
         a.shape == b.shape && a.dim == b.dim && a.split_dim == b.split_dim && a.concat_dim == b.concat_dim &&
         a.maximum == b.maximum && a.algorithm == b.algorithm;
}

const char* overlap_text(Overlap overlap) {
  switch (overlap) {
    case Overlap::none: return "";
    case Overlap::reader: return ", early";
    case Overlap::ahead: return ", a layer ahead";
  }
  return "";
}

std::string collectives_text(const Function& function) {
  std::vector<CollectiveLine> lines;
  for (const CollectiveUse& use : collectives_of(function.graph)) {
    const auto same = std::ranges::find_if(lines, [&](const CollectiveLine& line) { return alike(line.use, use); });
    if (same == lines.end()) {
      lines.push_back({use, use.times});
    } else {
      same->times += use.times;
    }
  }
  std::ranges::stable_sort(lines, std::greater<>(), [](const CollectiveLine& line) {
    return mean_bytes_sent(line.use.call) * static_cast<double>(line.times);
  });
  // Small collectives are many and send little: they share one line.
  constexpr std::size_t kLines = 9;
  std::string text;
  for (const GraphNode& node : function.graph.nodes()) {
    if (!is_transfer(node)) continue;
    const TransferCall call = transfer_call(function.graph, node);
    text += fmt::format("    {:>6} × {:<14} over {:<12} {:<34} {:>11}       {}\n", 1, node.op->name, call.axis,
                        to_string(Type(call.dtype, call.shape)), to_string(call.bytes()),
                        call.sends == (call.by > 0) ? "with the next stage" : "with the stage before");
  }
  double rest = 0;
  std::int64_t others = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const CollectiveCall& call = lines[i].use.call;
    const double bytes = mean_bytes_sent(call);
    if (i >= kLines && lines.size() > kLines + 1) {
      rest += bytes * static_cast<double>(lines[i].times);
      others += lines[i].times;
      continue;
    }
    text += fmt::format("    {:>6} × {:<14} over {:<12} {:<34} {:>11} each  {}{}\n", with_commas(lines[i].times),
                        name_of(call.kind), call.axis, to_string(Type(call.dtype, call.shape)),
                        to_string(Bytes(static_cast<std::int64_t>(bytes))), name_of(call.algorithm),
                        overlap_text(lines[i].use.overlap));
  }
  if (others > 0) {
    text += fmt::format("    {:>6}   smaller ones, {} together\n", with_commas(others),
                        to_string(Bytes(static_cast<std::int64_t>(rest))));
  }
  return text;
}

// "zero, (forward, backward) × 8, reduce, update".
std::string actions_text(const Program& program, const Schedule& schedule) {
  const auto name = [&](std::size_t i) -> const std::string& {
    return program.functions[static_cast<std::size_t>(schedule.actions[i].function)].name;
  };
  std::string text;
  for (std::size_t i = 0; i < schedule.actions.size();) {
    // The longest repetition that begins here, of a period of one to eight actions.
    std::size_t period = 1, times = 1;
    for (std::size_t p = 1; p <= 8; ++p) {
      std::size_t n = 1;
      const auto again = [&](std::size_t from) {
        for (std::size_t k = 0; k < p; ++k) {
          if (from + k >= schedule.actions.size() || name(from + k) != name(i + k)) return false;
        }
        return true;
      };
      while (again(i + n * p)) ++n;
      if (n > 1 && n * p > times * period) period = p, times = n;
    }
    std::string one;
    for (std::size_t k = 0; k < period; ++k) one += (k == 0 ? "" : ", ") + name(i + k);
    if (period > 1) one = "(" + one + ")";
    if (times > 1) one += fmt::format(" × {}", times);
    text += (text.empty() ? "" : ", ") + one;
    i += period * times;
  }
  return text;
}

std::string memory_text(const Program& program) {
  const MemoryByOwner owners = memory_by_owner(program);
  std::vector<std::string> parts;
  for (int r = 0; r < kNumResidences; ++r) {
    const Bytes bytes = owners[static_cast<Residence>(r)];
    if (bytes > Bytes()) parts.push_back(fmt::format("{} {}", name_of(static_cast<Residence>(r)), to_string(bytes)));
  }
  return fmt::format("{}; arena {} B ({})", fmt::join(parts, ", "), with_commas(program.arena.count()),
                     to_string(program.arena));
}

// The number of devices that run this Program; in a pipeline, those of one stage.
std::int64_t devices_of(const Program& program) {
  return program.mesh.num_devices() / program.mesh.size_along(kPipelineAxis);
}

}  // namespace

std::string summary_of(const Program& program) {
  std::string text =
      fmt::format("program {}  hash {}\n  target {}\n", program.name, hash_of(program), program.target.name);
  text += program.mesh.trivial() ? std::string("  one device\n")
                                 : fmt::format("  mesh {}, {} devices that all run this; bytes sent are one device's\n",
                                               to_string(program.mesh), with_commas(devices_of(program)));
  if (const std::optional<LogicalShards>& shards = program.shards) {
    text +=
        fmt::format("  exact: {} logical shards, {} of them this device's from {}, which are the rows of its train\n",
                    shards->shards, shards->owned, shards->first);
  }
  text += "functions\n";
  for (const Function& f : program.functions) {
    text += fmt::format("  {:<10} {} nodes, {} FLOPs, {} moved, scratch {}", f.name, count_nodes(f.graph),
                        with_commas(f.work.flops), to_string(f.work.read + f.work.written), to_string(f.scratch));
    if (!program.mesh.trivial()) text += fmt::format(", {} sent", to_string(bytes_sent(program, f, 0)));
    text += "\n" + collectives_text(f);
  }
  text += "schedules\n";
  for (const Schedule& schedule : program.schedules)
    text += fmt::format("  {:<10} {}\n", schedule.name, actions_text(program, schedule));
  return text + "memory\n  " + memory_text(program) + "\n";
}

}  // namespace systole

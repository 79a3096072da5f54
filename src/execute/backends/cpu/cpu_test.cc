// The table op → kernel against the reference on the table of cases, and the device on whole functions.

#include "execute/backends/cpu/cpu.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

#include "describe/ir/work.h"
#include "describe/ops/ops.h"
#include "describe/ops/testing/list.h"
#include "describe/partition/training.h"
#include "execute/backends/cpu/dnnl_library.h"
#include "execute/backends/cpu/node_call.h"
#include "execute/backends/reference/reference.h"
#include "execute/runtime/executor.h"
#include "execute/runtime/initialize.h"
#include "execute/runtime/testing/expect_planned_work.h"

namespace systole {
namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kMark{0xA5};

// A tensor between guard zones, aligned as in an arena.
struct Guarded {
  std::vector<std::byte> bytes;
  std::size_t at, size;
  explicit Guarded(std::size_t n) : bytes(n + 3 * kGuard, kMark), size(n) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data() + kGuard);
    at = kGuard + (kGuard - address % kGuard) % kGuard;
  }
  std::byte* data() { return bytes.data() + at; }
  bool intact() const {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if ((i < at || i >= at + size) && bytes[i] != kMark) return false;
    }
    return true;
  }
};

class Lab {
 public:
  Lab(cpu::Isa isa, int threads)
      : kernels_(cpu::kernels_of(isa)),
        contractions_(kernels_, threads),
        shared_{kernels_, contractions_, threads, cpu::best_int8_unit(isa)} {}

  // The reason if the case cannot run here; empty: it ran and was compared with the reference.
  std::string check(const OpCase& c) {
    const std::vector<HostTensor> operands = fill_operands(c);
    Graph graph("case");
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i)
      inputs.push_back(graph.input("x" + std::to_string(i), type_of(operands[i])));
    if (inputs.empty()) inputs.push_back(graph.input("nothing", Type(DType::f32, {})));
    const auto given = std::span(inputs).first(operands.size());
    graph.apply(c.op, given, c.attrs);
    const cpu::NodeInfo info{graph, graph.nodes().back()};
    const cpu::KernelEntry* entry = cpu::entry_of(c.op);
    if (entry == nullptr) return "no kernel";
    for (int v = 0; v < graph.num_values(); ++v) {
      if (entry->takes_i8 && cpu::is_packed(graph.type(ValueId{v}).dtype)) continue;
      if (!cpu::elem_of(graph.type(ValueId{v}).dtype)) return "a type without kernels";
    }
    if (std::string reason = entry->refuses(info, shared_); !reason.empty()) return reason;
    run(c, info, *entry, operands);
    return {};
  }

 private:
  void run(const OpCase& c, const cpu::NodeInfo& info, const cpu::KernelEntry& entry,
           const std::vector<HostTensor>& operands) {
    const std::vector<HostTensor> want = run_reference(*info.node.op, c.attrs, operands);
    std::vector<Guarded> given, made;
    cpu::Places places;
    for (const HostTensor& t : operands) {
      given.emplace_back(t.bytes().size());
      std::copy(t.bytes().begin(), t.bytes().end(), given.back().data());
      places.operands.push_back(given.back().data());
    }
    for (const HostTensor& t : want) {
      made.emplace_back(t.bytes().size());
      places.results.push_back(made.back().data());
    }
    Guarded workspace(static_cast<std::size_t>(entry.workspace == nullptr ? 0 : entry.workspace(info, shared_)));
    places.workspace = workspace.data();
    const cpu::KernelReport report = entry.bind(info, places, shared_)();
    const Work work = work_of(info.graph, info.node);
    EXPECT_EQ(report.flops + report.skipped_flops, work.flops) << c.describe();
    EXPECT_EQ(report.transcendentals + report.skipped_transcendentals, work.transcendentals) << c.describe();
    EXPECT_EQ(report.bytes_read, work.read.count()) << c.describe();
    EXPECT_EQ(report.bytes_written, work.written.count()) << c.describe();
    EXPECT_TRUE(workspace.intact()) << c.describe();
    for (std::size_t i = 0; i < operands.size(); ++i) {
      EXPECT_TRUE(given[i].intact() &&
                  std::equal(operands[i].bytes().begin(), operands[i].bytes().end(), given[i].data()))
          << c.describe() << " operand " << i;
    }
    for (std::size_t r = 0; r < want.size(); ++r) {
      EXPECT_TRUE(made[r].intact()) << c.describe() << " result " << r;
      HostTensor got(want[r].dtype(), want[r].shape());
      std::copy_n(made[r].data(), got.bytes().size(), got.bytes().begin());
      const double tolerance = entry.takes_i8 ? 0 : tolerance_of(c, want[r].dtype(), DType::f32);
      EXPECT_EQ(difference(got, want[r], tolerance), "") << c.describe() << " result " << r;
    }
  }

  const cpu::Kernels& kernels_;
  cpu::Contractions contractions_;
  cpu::Shared shared_;
};

TEST(Cpu, every_case_of_every_op_is_the_reference) {
  std::set<std::string> ran;
  for (const cpu::Isa isa : {cpu::Isa::avx2, cpu::Isa::avx512}) {
    if (!cpu::supports(isa)) continue;
    SCOPED_TRACE(cpu::name_of(isa));
    for (const int threads : {1, 2}) {
      Lab lab(isa, threads);
      for (const DType f : {DType::f32, DType::bf16}) {
        for (const OpCase& c : op_cases(f).good) {
          const std::string refusal = lab.check(c);
          if (refusal.empty()) {
            ran.insert(c.op);
          } else if (isa == cpu::Isa::avx2 && threads == 1) {
            std::printf("not run: %s: %s\n", c.describe().c_str(), refusal.c_str());
          }
        }
      }
    }
  }
  for (const cpu::KernelEntry* entry : cpu::all_entries()) {
    if (entry->op == std::string_view("fusion")) continue;
    EXPECT_TRUE(ran.count(entry->op) == 1) << entry->op << " has no case that runs";
  }
}

// Two layers with a norm, an attention and a loss: covers most kernels in one Program.
Graph small_loss() {
  Graph g("small");
  const std::int64_t b = 3, t = 20, e = 24, h = 2, d = 12, v = 40;
  const auto parameter = [&](const char* name, Shape shape, std::vector<std::string> names) {
    return g.parameter({name, Type(DType::f32, std::move(shape), std::move(names)), {Init::Kind::normal, 0.2}});
  };
  const Value table = parameter("table", {v, e}, {"vocab", "embed"}), scale = parameter("scale", {e}, {"embed"}),
              bias = parameter("bias", {e}, {"embed"});
  const Value qkv = parameter("qkv", {e, 3, h, d}, {"embed", "three", "heads", "head"}),
              out = parameter("out", {h, d, e}, {"heads", "head", "embed"});
  const Value tokens = g.input("tokens", Type(DType::i32, {b, t}, {"batch", "seq"})),
              labels = g.input("labels", Type(DType::i32, {b, t}, {"batch", "seq"}));
  const Value x = embedding(table, tokens);
  const Value heads = contract(layer_norm(x, scale, bias, 1e-5).y, qkv, "bte,echd->cbthd");
  const auto part = [&](std::int64_t i) {
    return reshape(slice_dim(heads, 0, i, i + 1), Type(DType::f32, {b, t, h, d}));
  };
  const Value o = attention(part(0), part(1), part(2), {}).o;
  const Value y = add(x, gelu_tanh(contract(o, out, "bthd,hde->bte")));
  g.output("loss", sum_all(cross_entropy(contract(y, table, "bte,ve->btv"), labels).loss));
  return g;
}

struct Outcome {
  double loss = 0;
  std::vector<std::vector<double>> parameters;
  std::vector<WorkCounters> counters;
};

Outcome train(Device& device, const Precision& precision, int steps, const Program** seen = nullptr) {
  Strategy strategy;
  strategy.precision = precision;
  strategy.optimizer.clip = 1;
  static std::vector<std::unique_ptr<Program>> kept;  // executors refer to their program
  kept.push_back(std::make_unique<Program>(
      training_program("small", small_loss(), std::nullopt, Mesh(), strategy, device.target(),
                       [&](const Graph& g, const GraphNode& n) { return device.workspace(g, n); })));
  const Program& program = *kept.back();
  if (seen != nullptr) *seen = &program;
  auto executor = Executor::create(program, device).value();
  EXPECT_TRUE(initialize(*executor, 7).ok());
  const auto put = [&](const char* name, std::vector<double> values) {
    const int v = program.value_named(name);
    const Type& type = program.values[static_cast<std::size_t>(v)].type;
    EXPECT_TRUE(executor->write(v, 0, HostTensor(type.dtype, type.shape, values).bytes()).ok());
  };
  const auto get = [&](int v) {
    const Type& type = program.values[static_cast<std::size_t>(v)].type;
    HostTensor t(type.dtype, type.shape);
    EXPECT_TRUE(executor->read(v, 0, t.bytes()).ok());
    return t.values();
  };
  std::vector<double> tokens, labels;
  for (int i = 0; i < 60; ++i) {
    tokens.push_back(i * 7 % 40);
    labels.push_back(i % 9 == 8 ? -1 : (i * 7 + 7) % 40);
  }
  put("tokens", tokens);
  put("labels", labels);
  put("rate", {0.01});
  put("label_count", {54});
  Outcome outcome;
  for (int s = 0; s < steps; ++s) { EXPECT_TRUE(executor->run(program.schedule_named("train")).ok()); }
  outcome.loss = get(program.value_named("loss"))[0];
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].residence == Residence::parameter) outcome.parameters.push_back(get(static_cast<int>(v)));
  }
  outcome.counters = executor->counters();
  return outcome;
}

std::unique_ptr<Device> cpu_device(int threads, bool chains = true) {
  CpuOptions options;
  options.threads = threads;
  options.chains = chains;
  return make_cpu_device(options).value();
}

constexpr Precision kF32{DType::f32, DType::f32, DType::f32, DType::f32};

TEST(CpuDevice, trains_as_the_reference_does) {
  for (const Precision& precision : {kF32, Precision{}}) {
    auto reference = make_reference_device();
    auto device = cpu_device(2);
    const Outcome want = train(*reference, precision, 4), got = train(*device, precision, 4);
    const double tolerance =
        precision.compute == DType::f32 ? 1e-4 : 0.03;  // four steps of adamw; the first ones are signs
    EXPECT_NEAR(got.loss, want.loss, tolerance * want.loss);
    ASSERT_EQ(got.parameters.size(), want.parameters.size());
    for (std::size_t p = 0; p < want.parameters.size(); ++p) {
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < want.parameters[p].size(); ++i) {
        difference += std::pow(got.parameters[p][i] - want.parameters[p][i], 2);
        size += std::pow(want.parameters[p][i], 2);
      }
      EXPECT_LE(std::sqrt(difference), (precision.compute == DType::f32 ? 1e-3 : 0.1) * std::sqrt(size))
          << "parameter " << p;
    }
  }
}

TEST(CpuDevice, does_the_work_that_was_planned) {
  for (const Precision& precision : {kF32, Precision{}}) {
    for (const bool chains : {false, true}) {
      auto device = cpu_device(2, chains);
      const Program* program = nullptr;
      const Outcome outcome = train(*device, precision, 1, &program);
      for (const Action& action : program->schedule_named("train").actions) {
        const auto f = static_cast<std::size_t>(action.function);
        SCOPED_TRACE(program->functions[f].name);
        expect_planned_work(program->functions[f].work, outcome.counters[f]);
      }
    }
  }
}

TEST(CpuDevice, has_the_same_bits_for_any_number_of_threads_fused_or_not) {
  for (const Precision& precision : {kF32, Precision{}}) {
    auto one = cpu_device(1), two = cpu_device(2), three = cpu_device(3), plain = cpu_device(2, false);
    const Outcome first = train(*one, precision, 5);
    for (Device* device : {two.get(), three.get(), plain.get(), one.get()}) {
      const Outcome other = train(*device, precision, 5);
      EXPECT_EQ(first.loss, other.loss) << device->target().name;
      EXPECT_TRUE(first.parameters == other.parameters) << device->target().name;
    }
  }
}

TEST(CpuDevice, refuses_by_name_and_names_what_serves) {
  auto device = cpu_device(1);
  Graph g("wide");
  const Value x = g.input("x", Type(DType::f64, {3}));
  g.output("y", exp(x));
  Function function;
  function.name = "wide";
  function.graph = std::move(g);
  const auto refused = device->compile(function);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  EXPECT_NE(refused.error().message.find("exp: f64"), std::string::npos) << refused.error().message;
  train(*device, kF32, 1);
  const std::vector<std::string> used = device->kernels_used();
  EXPECT_TRUE(std::any_of(used.begin(), used.end(), [](const std::string& line) {
    return line.starts_with("matmul  ") && line.find("contract ×") != line.npos &&
           line.find(cpu::dnnl_isa() >= cpu::DnnlIsa::avx512 ? "oneDNN brg:" : "oneDNN gemm:") != line.npos;
  })) << fmt::format("{}", fmt::join(used, "\n"));
}

TEST(Cpu, a_machine_without_avx2_is_refused_with_what_to_do) {
  CpuOptions options;
  options.supports = [](cpu::Isa) { return false; };
  const auto refused = make_cpu_device(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  EXPECT_NE(refused.error().message.find("needs AVX2 and FMA"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().hint.find("--backend reference"), std::string::npos) << refused.error().hint;
  options.supports = [](cpu::Isa isa) { return isa == cpu::Isa::avx2; };
  options.isa = cpu::Isa::avx512;
  EXPECT_EQ(make_cpu_device(options).error().message, "this machine does not support avx512");
}

}  // namespace
}  // namespace systole

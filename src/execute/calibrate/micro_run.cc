#include "execute/calibrate/micro_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "describe/ir/work.h"
#include "describe/partition/builder.h"
#include "ground/tensor/dtype.h"

namespace systole {
namespace {

// Floats: steps of 0.37 modulo 2, so neighbours differ and zeros are rare; period 1600. Integers: from 1 in steps of 37
// modulo 64, as in lookups of table rows.
Status fill(Executor& executor, int value, const Type& type) {
  constexpr std::int64_t kPeriod = 1600;
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes().count()));
  for (std::int64_t i = 0; i < std::min(kPeriod, type.num_elements()); ++i) {
    const double number = std::fmod(0.37 * static_cast<double>(i + 1), 2.0) - 1.0;
    store(type.dtype, bytes.data(), i,
          is_float(type.dtype)           ? number
          : type.dtype == DType::boolean ? 1
                                         : static_cast<double>((37 * i + 1) % 64));
  }
  const auto period = static_cast<std::size_t>(bytes_of(type.dtype, {kPeriod}).count());
  for (std::size_t done = period; done < bytes.size(); done += std::min(done, bytes.size() - done))
    std::memcpy(bytes.data() + done, bytes.data(), std::min(done, bytes.size() - done));
  return executor.write(value, 0, bytes);
}

}  // namespace

Sample sample_of(std::vector<Seconds> times) {
  CHECK(!times.empty(), "a sample of nothing");
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  const Seconds lower = times[n / 4];
  return {lower, (times[(3 * n) / 4] - lower) / lower, static_cast<int>(n)};
}

Result<std::unique_ptr<MicroRun>> MicroRun::make(Device& device, Graph graph) {
  const WorkspaceOf workspace = [&device](const Graph& g, const GraphNode& n) { return device.workspace(g, n); };
  ProgramBuilder builder("calibrate", Mesh(), device.target(), workspace);
  const auto is_output = [&graph](const std::string& name) {
    return std::ranges::any_of(graph.outputs(), [&](const GraphOutput& output) { return output.name == name; });
  };
  for (const GraphInput& input : graph.inputs()) {
    const Residence residence = is_output(input.name) ? Residence::state : Residence::input;
    builder.add_value({input.name, graph.type(input.value), residence, 1, std::nullopt, 0, 0});
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (builder.has_value(output.name)) continue;  // updates the input in place
    builder.add_value({output.name, graph.type(output.value), Residence::output, 1, std::nullopt, 0, 0});
  }
  const int f = builder.add_function("op", std::move(graph), {}, {});
  builder.add_schedule({"run", {{f, 0, 0, Stream::compute, {}}}});
  std::unique_ptr<MicroRun> run(new MicroRun(builder.finish()));  // the constructor is private
  run->executor_ = TRY(Executor::create(run->program_, device));
  for (std::size_t v = 0; v < run->program_.values.size(); ++v) {
    const ProgramValue& value = run->program_.values[v];
    if (value.residence != Residence::output) TRY(fill(*run->executor_, static_cast<int>(v), value.type));
  }
  return run;
}

Result<Sample> MicroRun::measure(Clock& clock, Seconds budget) {
  const Schedule& schedule = program_.schedules[0];
  TRY(executor_->run(schedule));  // warms up pages and caches
  const Seconds began = clock.now();
  TRY(executor_->run(schedule));
  const Seconds one = std::max(clock.now() - began, Seconds(1e-7));
  const int batch = std::max(1, static_cast<int>(Seconds(1e-3) / one));
  std::vector<Seconds> times;
  for (Seconds start = clock.now(); times.size() < 3 || clock.now() - start < budget;) {
    const Seconds from = clock.now();
    for (int i = 0; i < batch; ++i) TRY(executor_->run(schedule));
    times.push_back((clock.now() - from) * (1.0 / batch));
  }
  return sample_of(std::move(times));
}

Work MicroRun::work_of_one(std::string_view op) const {
  const Graph& graph = program_.functions[0].graph;
  const auto node = std::ranges::find_if(graph.nodes(), [&](const GraphNode& n) { return n.op->name == op; });
  CHECK(node != graph.nodes().end(), "no {} is measured", op);
  return work_of(graph, *node);
}

Result<Sample> MicroRun::measure_op(Clock& clock, Seconds budget, std::string_view op) {
  const auto so_far = [&]() -> Result<OpTime> {
    for (const OpTime& time : executor_->op_times(0))
      if (time.op == op) return time;
    return error(ErrorKind::unsupported, "{} does not time its ops", executor_->device().target().name);
  };
  const Schedule& schedule = program_.schedules[0];
  TRY(executor_->run(schedule));
  std::vector<Seconds> times;
  for (Seconds start = clock.now(); times.size() < 3 || clock.now() - start < budget;) {
    const OpTime before = TRY(so_far());
    TRY(executor_->run(schedule));
    const OpTime after = TRY(so_far());
    times.push_back((after.time - before.time) * (1.0 / static_cast<double>(after.calls - before.calls)));
  }
  return sample_of(std::move(times));
}

}  // namespace systole

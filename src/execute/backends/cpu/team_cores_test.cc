// The cores of this process's threads, as the system reports them, while the device runs kernels and afterwards.

#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "execute/backends/cpu/cpu.h"
#include "execute/runtime/executor.h"

namespace systole {
namespace {

// Per thread: "0-1", "1".
std::map<std::string, std::string> cores_of_threads() {
  std::map<std::string, std::string> cores;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    std::ifstream status("/proc/self/task/" + std::string(task->d_name) + "/status");
    for (std::string line; std::getline(status, line);) {
      const std::string key = "Cpus_allowed_list:\t";
      if (line.starts_with(key)) cores[task->d_name] = line.substr(key.size());
    }
  }
  closedir(tasks);
  return cores;
}

class Seen : public KernelObserver {
 public:
  void before(const ObservedKernel&) override {}
  Status after(const ObservedKernel&) override {
    cores = cores_of_threads();
    return {};
  }
  std::map<std::string, std::string> cores;
};

// A product of n × n.
Program product(std::int64_t n, const Target& target, const Device& device) {
  ProgramBuilder builder("p", Mesh(), target, [&device](const Graph& graph, const GraphNode& node) {
    return device.workspace(graph, node);
  });
  const Type type(DType::f32, {n, n});
  for (const char* name : {"a", "b"}) builder.add_value({name, type, Residence::parameter});
  builder.add_value({"y", type, Residence::output});
  Graph graph("multiply");
  const Value a = graph.input("a", type), b = graph.input("b", type);
  graph.output("y", contract(a, b, "ij,jk->ik"));
  builder.add_function("multiply", std::move(graph), {}, {});
  builder.add_schedule({"all", {{0, 0, 0, Stream::compute, {}}}});
  return builder.finish();
}

TEST(TeamOnCores, by_what_the_system_says_of_all_threads) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  const auto num_cores = static_cast<std::size_t>(CPU_COUNT(&set));
  if (num_cores < 2) GTEST_SKIP() << "needs two cores";
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"}) unsetenv(name);
  const std::string all = cores_of_threads().at(std::to_string(getpid()));
  // Other threads, created before the team and after it.
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  const auto sleep = [&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done; });
  };
  std::thread reader(sleep);
  const std::unique_ptr<Device> device = make_cpu_device().value();
  Seen seen;
  device->observe(&seen);
  const Program program = product(512, device->target(), *device);
  const std::unique_ptr<Executor> executor = Executor::create(program, *device).value();
  executor->run(program.schedules[0]).value();
  std::thread writer(sleep);
  executor->run(program.schedules[0]).value();
  std::map<std::string, std::size_t> threads;
  for (const auto& [thread, cores] : seen.cores) ++threads[cores];
  EXPECT_GE(threads[all], 2u) << "reader and writer";
  EXPECT_EQ(seen.cores.size() - threads[all], num_cores) << "the team";
  EXPECT_EQ(threads.size(), num_cores + 1) << "each of it on its own";
  EXPECT_EQ(cores_of_threads().at(std::to_string(getpid())), all);
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_all();
  reader.join();
  writer.join();
}

}  // namespace
}  // namespace systole

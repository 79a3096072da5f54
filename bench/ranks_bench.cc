// Two ranks of one thread beside one rank of two threads, at the same batch: tokens a second, in turns.
//
//   ranks_bench [rows=8,2] [rounds=5] [seconds=0.7] [sides=data shm,…] [overlap=1] [layers=3] [width=128] [ops=0]
//
// The workload is the quickstart's model with rows of 512 tokens, in bf16. Each side is processes of its own: one that
// runs the whole batch with two threads, and pairs that run half of it each, with one thread: data parallel and fully
// sharded, over shared memory and over TCP. In a round each side runs steps for as long as `seconds` once. A ratio is
// the median over the rounds of a side's tokens a second over those of the one rank in the same round. overlap=0 has
// collectives end where they stand; ops=1 tells of rank 0's milliseconds a step by op.

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "describe/models/decoder/decoder.h"
#include "describe/partition/training.h"
#include "execute/backends/cpu/cpu.h"
#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"
#include "execute/comm/tcp_transport.h"
#include "execute/runtime/initialize.h"
#include "ground/net/rendezvous_server.h"

namespace systole {
namespace {

constexpr std::int64_t kSequenceLength = 512, kVocabulary = 2048;

struct Setting {
  std::vector<std::string> rows{"8", "2"}, sides{"data shm", "fsdp shm", "data tcp", "fsdp tcp"};
  int rounds = 5;
  double seconds = 0.7;
  bool overlap = true, ops = false;
  std::int64_t layers = 3, width = 128;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Setting setting_of(int count, char** arguments) {
  Setting s;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i], key = word.substr(0, word.find('=')), value = word.substr(key.size() + 1);
    if (key == "rows") s.rows = split(value);
    if (key == "sides") s.sides = split(value);
    if (key == "rounds") s.rounds = std::stoi(value);
    if (key == "seconds") s.seconds = std::stod(value);
    if (key == "overlap") s.overlap = value != "0";
    if (key == "ops") s.ops = value != "0";
    if (key == "layers") s.layers = std::stoll(value);
    if (key == "width") s.width = std::stoll(value);
  }
  return s;
}

// A step of one rank, again and again.
class Stepper {
 public:
  // `axis`: "" for the one that is alone.
  Stepper(const Setting& setting, std::int64_t rows, const std::string& axis, Transport* transport)
      : device_(make_cpu_device(options(transport)).value()) {
    const std::int64_t ranks = transport == nullptr ? 1 : transport->num_ranks();
    const Mesh mesh = ranks == 1 ? Mesh{} : Mesh::make({{axis, ranks}}).value();
    if (transport != nullptr) {
      communicator_ = make_communicator(*transport, mesh).value();
      device_->connect(communicator_.get());
    }
    DecoderSpec config;
    config.layers = setting.layers, config.width = setting.width, config.heads = config.kv_heads = 4;
    config.head = setting.width / 4, config.mlp = 4 * setting.width;
    config.context = kSequenceLength, config.vocabulary = kVocabulary;
    const auto model = make_decoder(config);
    Strategy strategy;
    strategy.snapshot = false;
    strategy.overlap = setting.overlap;
    program_ = std::make_unique<Program>(training_program(
        "ranks", model->loss({rows, kSequenceLength}, false), std::nullopt, mesh, strategy, device_->target(),
        [&](const Graph& g, const GraphNode& n) { return device_->workspace(g, n); }));
    executor_ = Executor::create(*program_, *device_).value();
    const std::int64_t rank = transport == nullptr ? 0 : transport->rank();
    initialize(*executor_, 1, rank).value();
    fill(rank, rows);
  }

  // Until `seconds` are over, as rank 0 says; steps a second.
  double run(double seconds) {
    barrier();
    const auto began = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    int steps = 0;
    for (bool more = true; more; ++steps) {
      executor_->run(program_->schedule_named("train")).value();
      more = agreed(passed() < seconds);
    }
    return steps / passed();
  }

  std::map<std::string, double> seconds_by_op() const {
    std::map<std::string, double> times;
    for (int f = 0; f < static_cast<int>(program_->functions.size()); ++f) {
      for (const OpTime& op : executor_->op_times(f)) times[op.op] += op.time.count();
    }
    return times;
  }

 private:
  static CpuOptions options(const Transport* transport) {
    CpuOptions options;
    options.threads = transport == nullptr ? 2 : 1;
    return options;
  }

  void barrier() {
    if (communicator_ != nullptr) communicator_->barrier().value();
  }
  bool agreed(bool mine) {
    std::byte one{mine};
    if (communicator_ != nullptr) communicator_->broadcast(std::span(&one, 1), 0).value();
    return one != std::byte{0};
  }

  // Made-up rows; the inputs of a step by their names.
  void fill(std::int64_t rank, std::int64_t rows) {
    for (std::size_t v = 0; v < program_->values.size(); ++v) {
      const ProgramValue& value = program_->values[v];
      if (value.residence != Residence::input) continue;
      const std::span<std::byte> bytes = executor_->view(static_cast<int>(v), 0);
      const auto size = static_cast<std::int64_t>(value.type.num_elements());
      for (std::int64_t i = 0; i < size; ++i) {
        double number = 0;
        if (value.name == "tokens" || value.name == "labels")
          number = static_cast<double>((i * 7919 + rank * 104729 + (value.name == "labels" ? 7919 : 0)) % kVocabulary);
        if (value.name == "positions") number = static_cast<double>(i % kSequenceLength);
        if (value.name == "segments" || value.name == "seed" || value.name == "step") number = 1;
        if (value.name == "rate") number = 1e-4;
        if (value.name == "label_count") number = static_cast<double>(rows * kSequenceLength);
        if (value.name.starts_with("coordinate/")) number = static_cast<double>(rank);
        store(value.type.dtype, bytes.data(), i, number);
      }
    }
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Executor> executor_;
};

struct RendezvousPoint {
  std::string place;
  NetAddress rendezvous;
  RunToken token;
};

std::unique_ptr<Transport> connect(const RendezvousPoint& point, const std::string& side, std::int32_t rank) {
  if (side.ends_with("shm")) return ring_transport(Segment::open(point.place, "bench").value(), rank).value();
  RendezvousClient client = RendezvousClient::connect(point.rendezvous, point.token).value();
  return tcp_transport(client, rank, 2).value();
}

// A side: its processes, told when to run; rank 0 answers with steps a second.
class Side {
 public:
  Side(const Setting& setting, std::int64_t rows, std::string name)
      : name_(std::move(name)), token_(RunToken::make().value()), rendezvous_(RendezvousServer::start(token_).value()) {
    const std::int32_t ranks = name_.empty() ? 1 : 2;
    segment_ = Segment::create(ranks, "bench").value();
    const RendezvousPoint point{segment_->place(), rendezvous_->address(), token_};
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      int to[2], from[2];
      if (::pipe(to) != 0 || ::pipe(from) != 0) std::abort();
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        be(setting, rows, point, rank, to[0], from[1]);
      }
      ::close(to[0]), ::close(from[1]);
      processes_.push_back({child, to[1], from[0]});
    }
    for (const Process& process : processes_) hear(process);  // ready
  }
  ~Side() {
    for (const Process& process : processes_) {
      ::close(process.to), ::close(process.from);
      ::kill(process.pid, SIGKILL);
      ::waitpid(process.pid, nullptr, 0);
    }
  }
  Side(const Side&) = delete;

  const std::string& name() const { return name_; }
  double run(double seconds) {
    for (const Process& process : processes_) {
      if (::write(process.to, &seconds, sizeof seconds) != sizeof seconds) std::abort();
    }
    double first = 0;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const double steps = hear(processes_[i]);
      if (i == 0) first = steps;
    }
    return first;
  }

 private:
  struct Process {
    pid_t pid;
    int to, from;
  };
  static double hear(const Process& process) {
    double number = 0;
    if (::read(process.from, &number, sizeof number) != sizeof number) {
      std::fprintf(stderr, "a rank has ended\n");
      std::exit(1);
    }
    return number;
  }

  [[noreturn]] void be(const Setting& setting, std::int64_t rows, const RendezvousPoint& point, std::int32_t rank,
                       int in, int out) {
    try {
      std::unique_ptr<Transport> transport = name_.empty() ? nullptr : connect(point, name_, rank);
      Stepper stepper(setting, rows, name_.substr(0, name_.find(' ')), transport.get());
      double number = stepper.run(0.1);
      (void)!::write(out, &number, sizeof number);
      int steps = 0;
      const std::map<std::string, double> before = stepper.seconds_by_op();
      for (double seconds = 0; ::read(in, &seconds, sizeof seconds) == sizeof seconds && seconds > 0;) {
        number = stepper.run(seconds);
        steps += static_cast<int>(number * seconds + 1);
        (void)!::write(out, &number, sizeof number);
      }
      if (setting.ops && rank == 0) tell(stepper, before, steps);
    } catch (const Failure& failure) { std::fprintf(stderr, "%s\n", to_string(failure.error()).c_str()); }
    ::_exit(0);
  }

  void tell(const Stepper& stepper, const std::map<std::string, double>& before, int steps) const {
    std::string text = fmt::format("  {:<9} ms a step:", name_.empty() ? "alone" : name_);
    for (const auto& [op, seconds] : stepper.seconds_by_op()) {
      const double each = 1e3 * (seconds - before.at(op)) / std::max(steps, 1);
      if (each >= 0.1) text += fmt::format(" {} {:.1f}", op, each);
    }
    std::fprintf(stderr, "%s\n", text.c_str());
  }

  const std::string name_;
  const RunToken token_;
  const std::unique_ptr<RendezvousServer> rendezvous_;
  std::shared_ptr<Segment> segment_;
  std::vector<Process> processes_;

 public:
  void end() {
    const double none = 0;
    for (const Process& process : processes_) (void)!::write(process.to, &none, sizeof none);
    for (const Process& process : processes_) ::waitpid(process.pid, nullptr, 0);
  }
};

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return numbers[numbers.size() / 2];
}

void bench(const Setting& setting, std::int64_t rows) {
  std::vector<std::unique_ptr<Side>> sides;
  sides.push_back(std::make_unique<Side>(setting, 2 * rows, ""));
  for (const std::string& name : setting.sides) sides.push_back(std::make_unique<Side>(setting, 2 * rows, name));
  std::vector<std::vector<double>> rates(sides.size());
  for (int round = 0; round < setting.rounds; ++round) {
    for (std::size_t s = 0; s < sides.size(); ++s) rates[s].push_back(sides[s]->run(setting.seconds));
  }
  const auto tokens = static_cast<double>(2 * rows * kSequenceLength);
  std::printf("%lld x %lld tokens a rank: one rank of 2 threads %.0f tokens/s\n", static_cast<long long>(rows),
              static_cast<long long>(kSequenceLength), median(rates[0]) * tokens);
  for (std::size_t s = 1; s < sides.size(); ++s) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < rates[s].size(); ++r) ratios.push_back(rates[s][r] / rates[0][r]);
    const auto [least, most] = std::ranges::minmax(ratios);
    std::printf("  2 ranks of 1 thread, %-9s %8.0f tokens/s  ratio %.3f (%.3f to %.3f)\n", sides[s]->name().c_str(),
                median(rates[s]) * tokens, median(ratios), least, most);
  }
  std::fflush(stdout);
  for (const auto& side : sides) side->end();
}

}  // namespace
}  // namespace systole

int main(int count, char** arguments) {
  const systole::Setting setting = systole::setting_of(count, arguments);
  for (const std::string& rows : setting.rows) systole::bench(setting, std::stoll(rows));
  return 0;
}

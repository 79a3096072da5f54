// all_reduce and all_gather of f32 among processes of this machine, beside Gloo's own algorithms over TCP on the
// loopback interface, in turns.
//
//   collectives_bench [ranks=2,4,8] [kinds=all_reduce,all_gather] [from=1024] [to=268435456] [rounds=7] [detail=0]
//   [peers=1] [spin=MICROSECONDS]
//
// A round of one size runs each contestant once, several times over where it is short, between two barriers; medians
// over the rounds at rank 0. One that takes 4 s is not run again (Gloo's newer ring, of 8 ranks on 2 cores). A ratio is
// the time of the fastest of Gloo's algorithms over ours. all_gather's size is that of the gathered whole.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"

namespace systole {
namespace {

struct Setting {
  std::vector<std::int64_t> ranks{2, 4, 8};
  std::vector<std::string> kinds{"all_reduce", "all_gather"};
  std::int64_t from = 1 << 10, to = 256 << 20;
  int rounds = 7;
  bool detail = false;
  bool peers = true;  // false: ours alone
  Seconds spin = RingOptions().spin;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Setting setting_of(int argc, char** argv) {
  Setting s;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], key = word.substr(0, word.find('=')), value = word.substr(word.find('=') + 1);
    if (key == "ranks") {
      s.ranks.clear();
      for (const std::string& n : split(value)) s.ranks.push_back(std::stoll(n));
    }
    if (key == "kinds") s.kinds = split(value);
    if (key == "from") s.from = std::stoll(value);
    if (key == "to") s.to = std::stoll(value);
    if (key == "rounds") s.rounds = std::stoi(value);
    if (key == "detail") s.detail = value != "0";
    if (key == "peers") s.peers = value != "0";
    if (key == "spin") s.spin = Seconds(std::stod(value) * 1e-6);
  }
  return s;
}

// Who takes part: a name, and one run.
struct Contestant {
  std::string name;
  bool ours = false;
  std::function<void()> run;
};

class Rank {
 public:
  Rank(std::int32_t rank, std::int32_t n, const std::string& place, const std::string& folder, Seconds spin)
      : segment_(Segment::open(place, "bench").value()),
        transport_(ring_transport(segment_, rank, {Seconds(60), spin}).value()),
        communicator_(make_communicator(*transport_, Mesh::make({{"data", n}}).value()).value()),
        gloo_(std::make_shared<gloo::rendezvous::Context>(rank, n)) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(folder);
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo_->connectFullMesh(store, device);
  }

  // Median seconds of each contestant, as rank 0 sees them.
  std::map<std::string, double> measure(const std::string& kind, std::int64_t bytes, int rounds, bool peers) {
    const auto elements = static_cast<std::size_t>(bytes / 4);
    x_.assign(elements, 1.0F);
    y_.assign(kind == "all_gather" ? elements : 0, 0.0F);
    std::vector<Contestant> all = kind == "all_reduce" ? reducers(elements) : gatherers(elements);
    std::erase_if(all, [&](const Contestant& c) {
      return (!peers && c.name.starts_with("gloo")) || dropped_.contains(kind + c.name);
    });
    std::map<std::string, std::vector<double>> times;
    std::map<std::string, int> repeats;
    for (int round = -1; round < rounds; ++round) {  // the first is to warm up and to see how often to repeat
      for (const Contestant& contestant : all) {
        if (dropped_.contains(kind + contestant.name)) continue;
        const double seconds = time(contestant, round < 0 ? 1 : repeats[contestant.name]);
        if (round >= 0) times[contestant.name].push_back(seconds);
        if (round < 0) repeats[contestant.name] = agreed(std::clamp(static_cast<int>(4e-3 / seconds), 1, 200));
        if (round < 0 && agreed(seconds > kHopeless ? 1 : 0) == 1) dropped_.insert(kind + contestant.name);
      }
    }
    std::map<std::string, double> medians;
    for (auto& [name, each] : times) {
      std::ranges::sort(each);
      medians[name] = each[each.size() / 2];
    }
    return medians;
  }

 private:
  static constexpr double kHopeless = 4;  // seconds of one run: not run again at this size or a larger one

  double time(const Contestant& contestant, int count) {
    if (!communicator_->barrier().ok()) std::abort();
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) contestant.run();
    if (!communicator_->barrier().ok()) std::abort();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / count;
  }

  int agreed(int count) {  // rank 0 decides
    if (!communicator_->broadcast(std::as_writable_bytes(std::span(&count, 1)), 0).ok()) std::abort();
    return count;
  }

  Contestant ours(CollectiveKind kind, CollectiveAlgorithm algorithm, Shape shape, float* from, float* into) {
    const CollectiveCall call{kind,  "data",   communicator_->num_ranks(), DType::f32, std::move(shape), 0, 0, 0,
                              false, algorithm};
    const std::shared_ptr<PreparedCollective> prepared =
        communicator_->prepare(call, reinterpret_cast<std::byte*>(from), reinterpret_cast<std::byte*>(into), nullptr)
            .value();
    return {fmt::format("{} {}", transport_->name(), name_of(algorithm)), algorithm == CollectiveAlgorithm::direct,
            [this, prepared] {
              WorkCounters counters;
              if (const Status ran = communicator_->run(*prepared, counters); !ran.ok()) {
                std::fprintf(stderr, "%s\n", ran.error().message.c_str());
                std::abort();
              }
            }};
  }

  std::vector<Contestant> reducers(std::size_t elements) {
    float* x = x_.data();
    const Shape shape{static_cast<std::int64_t>(elements)};
    std::vector<Contestant> all;
    for (const CollectiveAlgorithm algorithm :
         {CollectiveAlgorithm::direct, CollectiveAlgorithm::ring, CollectiveAlgorithm::recursive_halving_doubling})
      all.push_back(ours(CollectiveKind::all_reduce, algorithm, shape, x, x));
    using Options = gloo::AllreduceOptions;
    for (const auto algorithm : {Options::Algorithm::RING, Options::Algorithm::BCUBE}) {
      const bool ring = algorithm == Options::Algorithm::RING;
      all.push_back({ring ? "gloo ring" : "gloo bcube", false, [this, x, elements, algorithm] {
                       Options options(gloo_);
                       options.setAlgorithm(algorithm);
                       options.setOutput(x, elements);
                       void (*sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
                       options.setReduceFunction(sum);
                       gloo::allreduce(options);
                     }});
    }
    const auto count = static_cast<int>(elements);
    const auto halving = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(gloo_, std::vector<float*>{x}, count);
    all.push_back({"gloo halving-doubling", false, [halving] { halving->run(); }});
    const auto chunked = std::make_shared<gloo::AllreduceRingChunked<float>>(gloo_, std::vector<float*>{x}, count);
    all.push_back({"gloo ring chunked", false, [chunked] { chunked->run(); }});
    return all;
  }

  std::vector<Contestant> gatherers(std::size_t elements) {
    const std::size_t own = elements / static_cast<std::size_t>(communicator_->num_ranks());
    std::vector<Contestant> all;
    for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::direct, CollectiveAlgorithm::ring})
      all.push_back(
          ours(CollectiveKind::all_gather, algorithm, {static_cast<std::int64_t>(own)}, x_.data(), y_.data()));
    all.push_back({"gloo ring", false, [this, own] {
                     gloo::AllgatherOptions options(gloo_);
                     options.setInput(x_.data(), own);
                     options.setOutput(y_.data(), own * static_cast<std::size_t>(communicator_->num_ranks()));
                     gloo::allgather(options);
                   }});
    return all;
  }

  std::vector<float> x_, y_;
  std::set<std::string> dropped_;
  std::shared_ptr<Segment> segment_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Communicator> communicator_;
  std::shared_ptr<gloo::rendezvous::Context> gloo_;
};

// Ratios of one number of ranks; their geometric mean and the least, which must be 0.9 and 1 at least.
bool print_kind(Rank& rank, bool speaks, const Setting& setting, const std::string& kind, std::int32_t n) {
  double logs = 0, least = 1e9;
  int sizes = 0;
  for (std::int64_t bytes = setting.from; bytes <= setting.to; bytes *= 4) {
    const std::map<std::string, double> medians =
        rank.measure(kind, bytes, bytes >= (16 << 20) ? std::min(setting.rounds, 3) : setting.rounds, setting.peers);
    if (!speaks) continue;
    double gloo = std::numeric_limits<double>::infinity();
    std::string best;
    for (const auto& [name, seconds] : medians) {
      if (name.starts_with("gloo") && seconds < gloo) gloo = seconds, best = name;
    }
    const double mine = medians.at("shm direct"), ratio = gloo / mine;
    std::printf("%-11s %d ranks %10lld B  shm direct %10.1f us  %-22s %10.1f us  ratio %6.2f\n", kind.c_str(), n,
                static_cast<long long>(bytes), mine * 1e6, best.c_str(), gloo * 1e6, ratio);
    for (const auto& [name, seconds] : medians) {
      if (setting.detail) std::printf("      %-24s %10.1f us\n", name.c_str(), seconds * 1e6);
    }
    std::fflush(stdout);
    logs += std::log(ratio), ++sizes, least = std::min(least, ratio);
  }
  if (!speaks || !setting.peers) return true;
  const double mean = std::exp(logs / sizes);
  std::printf("%-11s %d ranks: geometric mean %.2f, least %.2f\n", kind.c_str(), n, mean, least);
  return mean >= 1 && least >= 0.9;
}

int bench(const Setting& setting) {
  for (const std::int64_t ranks : setting.ranks) {
    const auto n = static_cast<std::int32_t>(ranks);
    char folder[] = "/tmp/systole-bench-XXXXXX";
    if (mkdtemp(folder) == nullptr) return 1;
    const auto segment = Segment::create(n, "bench").value();
    const std::string place = segment->place();
    std::vector<pid_t> children;
    for (std::int32_t r = 0; r < n; ++r) {
      const pid_t child = fork();
      if (child != 0) {
        children.push_back(child);
        continue;
      }
      alarm(600);
      Rank rank(r, n, place, folder, setting.spin);
      bool reached = true;
      for (const std::string& kind : setting.kinds) reached &= print_kind(rank, r == 0, setting, kind, n);
      std::fflush(stdout);
      _exit(reached ? 0 : 1);
    }
    bool ok = true;
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      ok &= status == 0;
    }
    std::filesystem::remove_all(folder);
    if (!ok) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) { return systole::bench(systole::setting_of(argc, argv)); }

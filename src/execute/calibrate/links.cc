// Latency and bandwidth between processes of this host: all_gathers of 64 B and of 4 MiB, over each transport with 2
// and 4 ranks; over TLS with 2, to compare with TCP. The figures are parameters of the cost of one step
// (ground/mesh/collective_cost.h), here an all-to-all exchange with m peers:
//
//   time = latency · (1 + (m − 1) / 8) + m · part / bandwidth
//
// This process is rank 0; the others are child processes that follow its commands until it ends them.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "execute/calibrate/calibrate.h"
#include "execute/calibrate/micro_run.h"
#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"
#include "execute/comm/tcp_transport.h"
#include "ground/base/os_error.h"
#include "ground/net/rendezvous_server.h"

namespace systole {
namespace {

constexpr Seconds kPatience{10};
constexpr unsigned kChildSeconds = 60;  // a child ends after this in any case
constexpr std::int64_t kSmall = 64, kLarge = 4 << 20;

struct RendezvousPoint {
  std::string segment, token;
  NetAddress rendezvous;
  RunToken run;
};

Result<std::unique_ptr<Transport>> join(const std::string& transport, const RendezvousPoint& point, std::int32_t rank,
                                        std::int32_t ranks) {
  if (transport == "shm") {
    return ring_transport(TRY(Segment::open(point.segment, point.token)), rank, {.patience = kPatience});
  }
  RendezvousClient client = TRY(RendezvousClient::connect(point.rendezvous, point.run));
  TcpOptions options;
  options.patience = kPatience;
  if (transport == "tls") options.mesh.tls = TRY(Tls::of(point.run));
  return tcp_transport(client, rank, ranks, options);
}

class LinkRank {
 public:
  static Result<std::unique_ptr<LinkRank>> make(std::unique_ptr<Transport> transport) {
    auto rank = std::make_unique<LinkRank>();
    const std::int64_t n = transport->num_ranks();
    rank->transport_ = std::move(transport);
    rank->communicator_ = TRY(make_communicator(*rank->transport_, TRY(Mesh::make({{"ranks", n}}))));
    rank->from_.resize(kLarge);
    rank->into_.resize(static_cast<std::size_t>(kLarge * n));
    for (std::size_t i = 0; i < 2; ++i) {
      const CollectiveCall call{CollectiveKind::all_gather, "ranks", n, DType::u8, {i == 0 ? kSmall : kLarge}};
      rank->gathers_[i] = TRY(rank->communicator_->prepare(call, rank->from_.data(), rank->into_.data(), nullptr));
    }
    return rank;
  }

  // The loop of the other ranks: gathers of the count and size that rank 0 requests, until it requests none.
  Status follow() {
    for (;;) {
      std::array<std::int32_t, 2> told{};
      TRY(communicator_->broadcast(std::as_writable_bytes(std::span(told)), 0));
      if (told[0] == 0) return {};
      TRY(run(told[0], told[1]));
    }
  }

  Result<Seconds> lead(int large, int times, Clock& clock) {
    std::array<std::int32_t, 2> told{times, large};
    TRY(communicator_->broadcast(std::as_writable_bytes(std::span(told)), 0));
    TRY(communicator_->barrier());
    const Seconds began = clock.now();
    for (int i = 0; i < times; ++i) TRY(gather(large));
    return (clock.now() - began) * (1 / static_cast<double>(times));
  }

  Status end() {
    std::array<std::int32_t, 2> told{};
    return communicator_->broadcast(std::as_writable_bytes(std::span(told)), 0);
  }

 private:
  Status run(int times, int large) {
    TRY(communicator_->barrier());
    for (int i = 0; i < times; ++i) TRY(gather(large));
    return {};
  }
  Status gather(int large) {
    WorkCounters counters;
    return communicator_->run(*gathers_[static_cast<std::size_t>(large)], counters);
  }

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::byte> from_, into_;
  std::array<std::unique_ptr<PreparedCollective>, 2> gathers_;
};

// Child processes; the destructor ends them and waits for them.
struct Children {
  std::vector<pid_t> pids;
  ~Children() {
    for (const pid_t pid : pids) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
};

Status start(Children& children, const std::string& transport, const RendezvousPoint& point, std::int32_t ranks) {
  for (std::int32_t rank = 1; rank < ranks; ++rank) {
    const pid_t parent = ::getpid(), child = ::fork();
    if (child < 0) return os_error(errno, "start a process");
    if (child > 0) {
      children.pids.push_back(child);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::alarm(kChildSeconds);
    Result<std::unique_ptr<Transport>> joined = join(transport, point, rank, ranks);
    if (!joined.ok()) ::_exit(1);
    Result<std::unique_ptr<LinkRank>> made = LinkRank::make(std::move(joined).value());
    ::_exit(made.ok() && (*made)->follow().ok() ? 0 : 1);
  }
  return {};
}

Result<Sample> measure(LinkRank& rank, int large, Seconds budget, Clock& clock) {
  const Seconds first = TRY(rank.lead(large, 3, clock));  // warms up and sets the repeat count
  const int times = std::clamp(static_cast<int>(Seconds(2e-3) / std::max(first, Seconds(1e-7))), 1, 1000);
  std::vector<Seconds> all;
  for (const Seconds end = clock.now() + budget; all.size() < 5 || clock.now() < end;)
    all.push_back(TRY(rank.lead(large, times, clock)));
  return sample_of(std::move(all));
}

}  // namespace

Result<std::vector<CalibratedFact>> measure_links(Seconds budget, Clock& clock) {
  std::vector<CalibratedFact> facts;
  for (const std::string transport : {"shm", "tcp", "tls"}) {
    for (const std::int32_t ranks : {2, 4}) {
      if (transport == "tls" && ranks > 2) continue;
      RendezvousPoint point;
      point.run = TRY(RunToken::make());
      point.token = point.run.hex();
      const std::unique_ptr<RendezvousServer> server = TRY(RendezvousServer::start(point.run));
      point.rendezvous = server->address();
      const std::shared_ptr<Segment> segment = TRY(Segment::create(ranks, point.token));
      point.segment = segment->place();
      Children children;
      TRY(start(children, transport, point, ranks));
      const std::unique_ptr<LinkRank> rank = TRY(LinkRank::make(TRY(join(transport, point, 0, ranks))));
      const Sample small = TRY(measure(*rank, 0, budget * 0.125, clock)),
                   large = TRY(measure(*rank, 1, budget * 0.125, clock));
      TRY(rank->end());
      const double others = ranks - 1;
      const Seconds latency = small.time * (1 / (1 + (others - 1) / 8));
      const Seconds moving = rest_of(large.time, small.time);
      const std::string key = fmt::format("link.{}.{}.", transport, ranks);
      facts.push_back(
          {key + "latency", latency.count(), CatalogUnit::seconds, small.spread,
           fmt::format("gather of {} B from each of {} processes, lower quarter of {}", kSmall, ranks, small.runs)});
      facts.push_back({key + "bandwidth", others * static_cast<double>(kLarge) / moving.count(),
                       CatalogUnit::bytes_per_second, large.spread,
                       fmt::format("gather of {} from each of {} processes, lower quarter of {}",
                                   to_string(Bytes(kLarge)), ranks, large.runs)});
    }
  }
  return facts;
}

}  // namespace systole

#include "ground/net/lease_keeper.h"

#include <algorithm>
#include <cstring>

namespace systole {

Result<std::unique_ptr<LeaseKeeper>> LeaseKeeper::start(const NetAddress& server, const RunToken& token,
                                                        LeaseTerms terms, std::function<void(const Error&)> lost) {
  RendezvousClient client =
      TRY(RendezvousClient::connect(server, token, {.generation = terms.generation, .tls = terms.tls}));
  const RunToken identity = TRY(RunToken::make());  // random bits as the holder id
  std::unique_ptr<LeaseKeeper> keeper(
      new LeaseKeeper(server, token, std::move(terms), std::move(lost), std::move(client)));
  std::memcpy(&keeper->holder_, identity.bytes().data(), sizeof keeper->holder_);
  TRY(keeper->renew());
  keeper->thread_ = std::thread([k = keeper.get()] { k->run(); });
  return keeper;
}

LeaseKeeper::LeaseKeeper(const NetAddress& server, const RunToken& token, LeaseTerms terms,
                         std::function<void(const Error&)> lost, RendezvousClient client)
    : server_(server), token_(token), terms_(std::move(terms)), lost_(std::move(lost)), client_(std::move(client)) {}

LeaseKeeper::~LeaseKeeper() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (held_ && client_) (void)client_->release(terms_.name, holder_);
}

bool LeaseKeeper::rest(Seconds duration) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::duration<double>(duration.count()), [&] { return end_; });
  return !end_;
}

// Renews once, over a new connection if the old one broke.
Status LeaseKeeper::renew() {
  if (!client_) {
    client_ = TRY(RendezvousClient::connect(server_, token_,
                                            {.generation = terms_.generation,
                                             .connect_time = terms_.time_to_live * 0.25,
                                             .answer_time = terms_.time_to_live,
                                             .tls = terms_.tls}));
  }
  Status renewed = client_->lease(terms_.name, holder_, terms_.time_to_live, terms_.who);
  if (!renewed.ok() && renewed.error().kind == ErrorKind::io) client_.reset();
  return renewed;
}

void LeaseKeeper::run() {
  NetDeadline until = deadline_after(terms_.time_to_live);
  while (rest(terms_.time_to_live * (1.0 / 3))) {
    const NetDeadline next_until = deadline_after(terms_.time_to_live);
    const Status renewed = renew();
    if (renewed.ok()) {
      until = next_until;
      continue;
    }
    // A broken connection may recover; every other error is final.
    const bool may_recover = renewed.error().kind == ErrorKind::io;
    if (may_recover && std::chrono::steady_clock::now() < until) continue;
    held_ = false;
    lost_(renewed.error());
    return;
  }
}

}  // namespace systole

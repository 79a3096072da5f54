#include "ground/net/lease_keeper.h"

#include <gtest/gtest.h>

#include <future>

#include "ground/net/rendezvous_server.h"

namespace systole {
namespace {

class Keeper : public testing::Test {
 protected:
  Result<std::unique_ptr<LeaseKeeper>> keep(std::string who, Seconds time_to_live, std::uint64_t generation = 0) {
    return LeaseKeeper::start(server_->address(), token_, {"rank/0", std::move(who), time_to_live, generation},
                              [this](const Error& error) { lost_.set_value(error); });
  }
  RendezvousClient watcher() { return RendezvousClient::connect(server_->address(), token_).value(); }
  RunToken token_ = RunToken::make().value();
  std::unique_ptr<RendezvousServer> server_ = RendezvousServer::start(token_).value();
  std::promise<Error> lost_;
};

TEST_F(Keeper, keeps_a_lease_beyond_its_time_and_gives_it_back) {
  {
    const auto keeper = keep("me", Seconds(0.5)).value();
    const auto second = keep("you", Seconds(0.5));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().kind, ErrorKind::exists);
    EXPECT_NE(second.error().message.find("me"), std::string::npos);
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    const std::vector<RendezvousLease> leases = watcher().leases("rank/").value();
    ASSERT_EQ(leases.size(), 1u);
    EXPECT_TRUE(leases[0].live());
    EXPECT_EQ(leases[0].who, "me");
  }
  EXPECT_TRUE(watcher().leases("rank/").value().empty());
}

TEST_F(Keeper, tells_once_when_its_generation_is_over) {
  RendezvousClient agent = watcher();
  EXPECT_TRUE(agent.fence(4).ok());
  const auto keeper = keep("me", Seconds(0.3), 4).value();
  EXPECT_TRUE(agent.fence(5).ok());
  std::future<Error> lost = lost_.get_future();
  ASSERT_EQ(lost.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_EQ(lost.get().message, "generation 4 is over: generation 5 runs");
}

TEST_F(Keeper, tells_when_the_server_is_gone_and_its_time_over) {
  const auto keeper = keep("me", Seconds(0.3)).value();
  server_.reset();
  std::future<Error> lost = lost_.get_future();
  ASSERT_EQ(lost.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_EQ(lost.get().kind, ErrorKind::io);
}

TEST_F(Keeper, finds_the_server_again) {
  const auto keeper = keep("me", Seconds(3.0)).value();
  const NetAddress address = server_->address();
  server_.reset();
  server_ = RendezvousServer::start(token_, {.bind = address}).value();  // a new server without state
  std::vector<RendezvousLease> leases;
  for (int i = 0; i < 500 && leases.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    leases = watcher().leases("rank/").value();
  }
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_TRUE(leases[0].live());
}

}  // namespace
}  // namespace systole

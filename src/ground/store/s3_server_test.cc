// s3:// against moto, a server that others wrote (tools/oracles/install s3; skipped where it cannot be installed). It checks no signatures
// and no checksums; the twin does (testing/s3_twin.h).

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "ground/base/hash.h"
#include "ground/base/testing/places.h"
#include "ground/net/socket.h"
#include "ground/process/capture.h"
#include "ground/process/spawn.h"
#include "ground/store/store_access.h"

namespace systole {
namespace {

class OneKey : public AwsKeySource {
 public:
  Result<AwsKeys> keys() override { return AwsKeys{"AKIDMOTO", "secret", ""}; }
};

// Of 12 MiB, which are no repetition of a part.
std::string large() {
  std::string text;
  text.reserve(12 << 20);
  for (std::uint64_t i = 0; text.size() < (12U << 20); ++i) text += to_hex(hash64(std::to_string(i)));
  return text;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

class Moto : public testing::Test {
 protected:
  void SetUp() override {
    const std::string packages = SYSTOLE_BINARY_DIR "/oracles/s3";
    const Captured installed = run_captured({.argv = {SYSTOLE_SOURCE_DIR "/tools/oracles/install", "s3", packages}},
                                            {.timeout = Seconds(600.0)})
                                   .value();
    if (installed.exit.code == 3) GTEST_SKIP() << "moto cannot be installed: " << installed.err;
    ASSERT_TRUE(installed.exit.ok()) << installed.err;
    const int port = free_port().value();
    Command command;
    command.argv = {"python3", "-m", "moto.server", "-H", "127.0.0.1", "-p", std::to_string(port)};
    command.env = {{"PYTHONPATH", packages}};
    command.out = command.err = ChildStream::null();
    command.dies_with_parent = true;
    server_.emplace(Process::start(command).value());
    url_ = fmt::format("http://127.0.0.1:{}", port);
    HttpPool pool({});
    const HttpSent made =
        send_with_retries(pool, {.first = Seconds(0.05), .most = Seconds(0.2), .total = Seconds(30.0)}, *real_clock(),
                          [&]() -> Result<HttpRequest> {
                            return HttpRequest{.method = "PUT",
                                               .url = url_ + "/bucket",
                                               .headers = {{"Content-Length", "0"},
                                                           {"Authorization",
                                                            "AWS4-HMAC-SHA256 Credential=A/20260101/"
                                                            "us-east-1/s3/aws4_request"}}};
                          })
            .value();
    ASSERT_EQ(made.reply.status, 200) << made.reply.body;
    StoreAccess access;
    access.s3 = [this]() -> Result<S3Access> {
      S3Access s3;
      s3.keys = std::make_shared<OneKey>();
      s3.endpoint = url_;
      s3.part = std::size_t{5} << 20;
      s3.parallel = 3;
      return s3;
    };
    store_ = open_store({"s3", "bucket/some/runs"}, access).value();
  }

  std::optional<Process> server_;
  std::string url_;
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(Moto, takes_and_gives_back) {
  const Generation one = store_->put("d/a b+ü", "hello").value();
  EXPECT_EQ(store_->put("d/a b+ü", "x", Precondition::absent()).error().kind, ErrorKind::exists);
  EXPECT_EQ(store_->get_whole("d/a b+ü")->bytes, "hello");
  EXPECT_EQ(store_->get_whole("d/a b+ü")->generation, one);
  const Generation two = store_->put("d/a b+ü", "hello again", Precondition::is(one)).value();
  EXPECT_EQ(store_->put("d/a b+ü", "x", Precondition::is(one)).error().kind, ErrorKind::busy);
  EXPECT_EQ(store_->put("d/none", "x", Precondition::is(one)).error().kind, ErrorKind::busy);
  std::string middle(5, ' ');
  ASSERT_TRUE(store_->get("d/a b+ü", 6, std::as_writable_bytes(std::span(middle))).ok());
  EXPECT_EQ(middle, "again");
  EXPECT_EQ(store_->get("d/a b+ü", 9, std::as_writable_bytes(std::span(middle))).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(store_->get("d/a b+ü", 99, std::as_writable_bytes(std::span(middle))).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(store_->size("d/a b+ü").value(), Bytes(11));
  ASSERT_TRUE(store_->put("e", "").ok());
  EXPECT_EQ(store_->get_whole("e")->bytes, "");
  const ObjectList listed = store_->list("", ListDepth::one_level).value();
  EXPECT_EQ(listed.prefixes, std::vector<std::string>{"d/"});
  ASSERT_EQ(store_->list("d/")->objects.size(), 1U);
  EXPECT_EQ(store_->list("d/")->objects[0].path, "d/a b+ü");
  EXPECT_EQ(store_->remove("d/a b+ü", Precondition::is(one)).error().kind, ErrorKind::busy);
  ASSERT_TRUE(store_->remove("d/a b+ü", Precondition::is(two)).ok());
  EXPECT_EQ(store_->size("d/a b+ü").error().kind, ErrorKind::not_found);
  EXPECT_TRUE(store_->remove("d/a b+ü").ok());
}

TEST_F(Moto, takes_an_object_by_parts) {
  const std::string text = large();
  const auto upload = store_->start_upload("d/large").value();
  for (std::size_t at = 0; at < text.size(); at += 7 << 20)
    ASSERT_TRUE(upload->append(bytes_of(text).subspan(at, std::min<std::size_t>(7 << 20, text.size() - at))).ok());
  EXPECT_FALSE(*has_object(*store_, "d/large"));
  store_->put("d/large", "in the way").value();
  EXPECT_EQ(upload->complete(Precondition::absent()).error().kind, ErrorKind::exists);
  const Generation there = store_->get_whole("d/large")->generation;
  ASSERT_TRUE(upload->complete(Precondition::is(there)).ok());
  std::string read(text.size(), ' ');
  const Status got = store_->get("d/large", 0, std::as_writable_bytes(std::span(read)));
  ASSERT_TRUE(got.ok()) << to_string(got.error());
  EXPECT_EQ(hash64(read), hash64(text));
  EXPECT_EQ(hash64(store_->get_whole("d/large")->bytes), hash64(text));

  const auto named = store_->start_upload("d/unnamed").value();
  ASSERT_TRUE(named->append(bytes_of(text)).ok());
  const Status copied = named->complete_as("d/by-its-hash", Precondition::absent());
  ASSERT_TRUE(copied.ok()) << to_string(copied.error());
  EXPECT_EQ(hash64(store_->get_whole("d/by-its-hash")->bytes), hash64(text));
  EXPECT_FALSE(*has_object(*store_, "d/unnamed"));

  const auto left = store_->start_upload("d/left").value();
  ASSERT_TRUE(left->append(bytes_of(text)).ok());
  EXPECT_EQ(store_->abort_uploads("d/").value(), Bytes(std::int64_t{10} << 20));
}

TEST_F(Moto, lets_one_of_eight_put_what_was_absent) {
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> won = 0, told = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        const auto put = store_->put(fmt::format("race/{}", round), std::to_string(t), Precondition::absent());
        won += put.ok();
        told += !put.ok() && put.error().kind == ErrorKind::exists;
      });
    }
    threads.clear();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(told, 7);
  }
}

}  // namespace
}  // namespace systole

// The store on Cloud Storage against its twin (testing/gcs_twin.h): what the contract in object_store_test.cc does not
// see. Faults at every request, parts, versions, checksums, tokens, and what people read when it is refused.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "ground/base/hash.h"
#include "ground/net/testing/http_stub.h"
#include "ground/store/testing/gcs_twin.h"

namespace systole {
namespace {

using Kind = GcsFault::Kind;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string some_bytes(std::size_t size, std::uint64_t seed = 1) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(hash64("bytes", seed + i / 8) >> i % 8 * 8);
  return text;
}

std::unique_ptr<ObjectStore> store_on(const GcsTwin& twin, std::shared_ptr<BearerSource> bearer = {}) {
  return open_store({"gs", "bucket/runs"}, twin.access(std::move(bearer))).value();
}

Status uploaded(ObjectStore& store, std::string_view path, std::string_view bytes, const Precondition& when = {}) {
  const std::unique_ptr<Upload> upload = TRY(store.start_upload(path));
  for (std::size_t at = 0; at < bytes.size(); at += 100'000) TRY(upload->append(bytes_of(bytes.substr(at, 100'000))));
  return upload->complete(when);
}

std::string told(const Error& error) { return to_string(error); }

// One fault at each request of an act that must come out right all the same, or fail and leave what was there.
struct Act {
  const char* name;
  std::function<Status(ObjectStore&)> play;
  std::string result;  // the bytes of "a" afterwards
};
class EveryRequest : public testing::TestWithParam<int> {};

const std::string& long_bytes() {
  static const std::string bytes = some_bytes(700'000);
  return bytes;
}

std::vector<Act> acts() {
  return {{"put", [](ObjectStore& s) { return Status(s.put("a", "new").ok() ? Status() : s.put("a", "new").error()); },
           "new"},
          {"upload", [](ObjectStore& s) { return uploaded(s, "a", long_bytes()); }, long_bytes()},
          {"conditional upload",
           [](ObjectStore& s) -> Status {
             const Generation seen = TRY(s.get_whole("a")).generation;
             return uploaded(s, "a", long_bytes(), Precondition::is(seen));
           },
           long_bytes()},
          {"conditional put",
           [](ObjectStore& s) -> Status {
             const Versioned seen = TRY(s.get_whole("a"));
             TRY(s.put("a", seen.bytes + "er", Precondition::is(seen.generation)));
             return {};
           },
           "older"},
          {"claim",
           [](ObjectStore& s) -> Status {
             TRY(s.remove("a"));
             const Generation made = TRY(s.put("a", "mine", Precondition::absent()));
             if (TRY(s.get_whole("a")).generation != made) return error(ErrorKind::internal, "another generation");
             return {};
           },
           "mine"}};
}

TEST_P(EveryRequest, may_fail_once_and_nobody_notices) {
  const auto kind = static_cast<Kind>(GetParam());
  for (const Act& act : acts()) {
    std::int64_t requests = 1;
    for (std::int64_t n = 1; n <= requests; ++n) {
      GcsTwin twin;
      twin.store("runs/a", "old");
      const auto store = store_on(twin);
      twin.inject({kind, n});
      const Status done = act.play(*store);
      twin.clear_faults();
      SCOPED_TRACE(fmt::format("{}, fault {} at request {}", act.name, static_cast<int>(kind), n));
      const std::map<std::string, std::string> objects = twin.objects();
      if (kind == Kind::flipped && !done.ok()) {  // an answer that makes no sense ends it
        EXPECT_TRUE(!objects.contains("runs/a") || objects.at("runs/a") == "old" || objects.at("runs/a") == act.result);
      } else {
        ASSERT_TRUE(done.ok()) << told(done.error()) << " " << twin.requests().back().target;
        ASSERT_TRUE(objects.contains("runs/a"));
        EXPECT_TRUE(objects.at("runs/a") == act.result);
      }
      requests = std::max(requests, n == 1 ? twin.count() : requests);
      EXPECT_EQ(store->list("").value().objects.size(), objects.contains("runs/a") ? 1u : 0u);
      if (HasFailure()) return;
    }
    EXPECT_GE(requests, 1);
  }
}
INSTANTIATE_TEST_SUITE_P(Gcs, EveryRequest, testing::Range(0, kGcsFaults));

// A process that dies at a request: what there is then, is whole; another process goes on, and cleans up.
TEST(Gcs, every_request_is_a_crash_point) {
  for (const Act& act : acts()) {
    for (const Kind kind : {Kind::refused, Kind::reply_lost}) {
      bool done = false;
      for (std::int64_t n = 1; !done; ++n) {
        GcsTwin twin;
        twin.store("runs/a", "old");
        if (kind == Kind::reply_lost) twin.inject({Kind::refused, n + 1, true});
        twin.inject({kind, n, kind == Kind::refused});
        done = act.play(*open_store({"gs", "bucket/runs"}, twin.access({}, true)).value()).ok();
        twin.clear_faults();
        SCOPED_TRACE(fmt::format("{}, dies at request {}", act.name, n));
        const auto objects = twin.objects();
        const bool absent = !objects.contains("runs/a");
        EXPECT_TRUE(absent ? std::string(act.name) == "claim"
                           : objects.at("runs/a") == "old" || objects.at("runs/a") == act.result);
        const auto next = store_on(twin);
        EXPECT_EQ(next->list("")->objects.size(), absent ? 0u : 1u) << "what was begun is not listed";
        next->abort_uploads("").value();
        EXPECT_EQ(twin.objects().size(), absent ? 0u : 1u) << "nothing remains";
        ASSERT_LT(n, 40);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Gcs, an_upload_goes_on_where_the_server_is) {
  GcsTwin twin;
  twin.inject({Kind::half_taken, 2});
  twin.inject({Kind::reply_lost, 5});
  const auto store = store_on(twin);
  ASSERT_TRUE(uploaded(*store, "a", long_bytes()).ok());
  EXPECT_EQ(twin.objects().at("runs/a"), long_bytes());
  std::size_t sent = 0, asked = 0;
  for (const GcsTwinRequest& request : twin.requests()) {
    if (request.method != "PUT") continue;
    const std::string range = request.headers.at("content-range");
    asked += range.starts_with("bytes */");
    if (!range.starts_with("bytes */"))
      sent += static_cast<std::size_t>(std::atoll(request.headers.at("content-length").c_str()));
  }
  EXPECT_EQ(asked, 1u) << "after the lost answer it asks";
  EXPECT_EQ(sent, long_bytes().size() + (256 << 10) / 2) << "only the half that was not taken is sent twice";
  EXPECT_EQ(twin.sessions(), 0u);
  EXPECT_EQ(twin.objects().size(), 1u);
}

TEST(Gcs, an_upload_that_is_dropped_leaves_nothing) {
  GcsTwin twin;
  const auto store = store_on(twin);
  {
    const auto upload = store->start_upload("a").value();
    upload->append(bytes_of(long_bytes())).value();
    EXPECT_EQ(twin.sessions(), 1u);
  }
  EXPECT_EQ(twin.sessions(), 0u);
  store->put("b", "there").value();
  const auto late = store->start_upload("b").value();
  late->append(bytes_of(long_bytes())).value();
  EXPECT_EQ(late->complete(Precondition::absent()).error().kind, ErrorKind::exists);
  EXPECT_EQ(twin.objects().size(), 2u) << "whole, under its temporary name";
  late->complete_as("c/d", Precondition::absent()).value();
  EXPECT_EQ(twin.objects().size(), 2u);
  EXPECT_EQ(twin.objects().at("runs/c/d"), long_bytes());
  EXPECT_EQ(twin.objects().at("runs/b"), "there");
}

TEST(Gcs, reads_one_version_in_many_ranges) {
  GcsTwin twin;
  const std::string first = some_bytes(1'500'000, 1), second = some_bytes(1'500'000, 2);
  twin.store("runs/a", first);
  const auto store = store_on(twin);
  std::string got(first.size(), ' ');
  twin.before(3, [&] { twin.store("runs/a", second); });  // between two ranges
  store->get("a", 0, std::as_writable_bytes(std::span(got))).value();
  EXPECT_TRUE(got == second);
  EXPECT_GE(twin.count(), 6 + 2);
  std::string middle(600'000, ' ');
  store->get("a", 777'777, std::as_writable_bytes(std::span(middle))).value();
  EXPECT_TRUE(middle == second.substr(777'777, 600'000));
  const Versioned whole = store->get_whole("a").value();
  EXPECT_TRUE(whole.bytes == second);
}

TEST(Gcs, bytes_that_changed_on_the_way_are_found) {
  GcsTwin twin;
  twin.store("runs/a", some_bytes(700'000));
  const auto store = store_on(twin);
  twin.inject({Kind::flipped, 3});
  const Result<Versioned> got = store->get_whole("a");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().kind, ErrorKind::corrupt);
  std::string all(700'000, ' ');
  twin.inject({Kind::flipped, twin.count() + 1});
  const Status changed = store->get("a", 0, std::as_writable_bytes(std::span(all)));
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().kind, ErrorKind::corrupt) << to_string(changed.error());
  EXPECT_TRUE(store->get("a", 0, std::as_writable_bytes(std::span(all))).ok());
}

TEST(Gcs, a_stalled_read_is_read_a_second_time) {
  GcsTwin twin;
  twin.store("runs/a", some_bytes(1000));
  std::string got(1000, ' ');
  const auto read = [&](ObjectStore& store) { store.get("a", 0, std::as_writable_bytes(std::span(got))).value(); };
  const auto store = store_on(twin);
  for (int i = 0; i < 40; ++i) read(*store);
  twin.inject({Kind::stalled, twin.count() + 1});
  got.assign(1000, ' ');
  const auto begun = std::chrono::steady_clock::now();
  read(*store);
  EXPECT_TRUE(got == some_bytes(1000));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(2));
}

// A token that is refused once, and then another.
class TwoTokens : public BearerSource {
 public:
  Result<std::string> token() override { return std::string(refused_ ? "second" : "first"); }
  void refused(const std::string& token) override { refused_ = refused_ || token == "first"; }

 private:
  std::atomic<bool> refused_ = false;
};

TEST(Gcs, shows_its_token_and_who_pays) {
  GcsTwin twin;
  twin.wants_token("second");
  twin.wants_payer("my-project");
  StoreAccess access = twin.access();
  access.gcs = [&]() -> Result<GcsAccess> {
    return GcsAccess{.bearer = std::make_shared<TwoTokens>(),
                     .endpoint = twin.url(),
                     .user_project = "my-project",
                     .kms_key = "projects/p/key",
                     .part = 256 << 10};
  };
  const auto store = open_store({"gs", "bucket"}, access).value();
  store->put("a", "x").value();
  EXPECT_EQ(twin.count(), 2) << "401, and once more with another token";
  EXPECT_EQ(twin.requests().back().query.at("kmsKeyName"), "projects/p/key");
  ASSERT_TRUE(uploaded(*store, "b", long_bytes()).ok());
  for (const GcsTwinRequest& request : twin.requests()) {
    if (!request.target.starts_with("/session/")) continue;
    EXPECT_FALSE(request.headers.contains("authorization")) << "a session's address is the permission";
  }
  const auto anonymous = store_on(twin);
  const Status none = anonymous->remove("a");
  EXPECT_EQ(none.error().code, ErrorCode::not_authenticated);
  EXPECT_EQ(told(none.error()).find("second"), std::string::npos) << "tokens are not told";
}

TEST(Gcs, says_what_is_wrong) {
  GcsTwin pays;
  pays.wants_payer("p");
  EXPECT_NE(store_on(pays)->get_whole("a").error().hint.find("GOOGLE_CLOUD_QUOTA_PROJECT"), std::string::npos);
  GcsTwin other("another");
  EXPECT_NE(store_on(other)->list("").error().message.find("The specified bucket does not exist"), std::string::npos);
  GcsTwin locked;
  locked.forbids();
  const Error forbidden = store_on(locked)->list("").error();
  EXPECT_EQ(forbidden.code, ErrorCode::forbidden);
  EXPECT_NE(forbidden.hint.find("roles/storage.objectUser"), std::string::npos);
  GcsTwin hotel;
  hotel.answers_html();
  const auto store = store_on(hotel);
  std::vector<std::byte> some(4);
  for (const Error& wrong : {store->list("").error(), store->size("a").error(), store->get("a", 0, some).error(),
                             store->put("a", "x").error(), store->get_whole("a").error()}) {
    EXPECT_EQ(wrong.kind, ErrorKind::io) << told(wrong);
    EXPECT_NE(wrong.hint.find("STORAGE_EMULATOR_HOST"), std::string::npos) << told(wrong);
  }
  for (const char* wrong : {"", "A", "b", "../x", "bucket/../x", "bu cket/x", "bucket//x"})
    EXPECT_EQ(open_store({"gs", wrong}).error().kind, ErrorKind::invalid) << wrong;
}

TEST(Gcs, what_is_no_path_of_a_store_is_not_listed) {
  GcsTwin twin;
  for (const char* name : {"runs/", "runs/a/", "runs/a/x", "runs/b//c", "elsewhere/x", "runs/.systole-1.tmp"})
    twin.store(name, "1");
  const auto store = store_on(twin);
  const ObjectList all = store->list("").value();
  ASSERT_EQ(all.objects.size(), 1u);
  EXPECT_EQ(all.objects[0].path, "a/x");
  EXPECT_EQ(all.left_out, 3);
  EXPECT_EQ(all.left_out_name, "");
  twin.store("runs/", "");
  twin.store("runs/a/", "");
  EXPECT_EQ(store->list("")->left_out, 1) << "an empty object for a folder is none";
  EXPECT_EQ(store->abort_uploads("")->count(), 1);
  EXPECT_FALSE(twin.objects().contains("runs/.systole-1.tmp"));
}

TEST(Gcs, a_list_that_leads_nowhere_is_none) {
  std::atomic<int> lists = 0;
  StubServer server([&](const StubRequest&, StubAnswer& answer) {
    answer.whole(200, ++lists < 9 ? R"({"nextPageToken": "a"})" : "{}");
  });
  StoreAccess access;
  access.gcs = [&] { return Result<GcsAccess>(GcsAccess{.endpoint = server.url(), .part = 256 << 10}); };
  const auto store = open_store({"gs", "bucket/x"}, access).value();
  const Result<ObjectList> all = store->list("");
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().kind, ErrorKind::io);
  EXPECT_EQ(lists, 2);
}

TEST(Gcs, a_list_with_a_size_that_is_none_is_no_list) {
  std::string size = "5";
  StubServer server([&](const StubRequest&, StubAnswer& answer) {
    answer.whole(200, fmt::format(R"({{"items": [{{"name": "x/a", "size": "{}"}}]}})", size));
  });
  StoreAccess access;
  access.gcs = [&] { return Result<GcsAccess>(GcsAccess{.endpoint = server.url(), .part = 256 << 10}); };
  const auto store = open_store({"gs", "bucket/x"}, access).value();
  EXPECT_EQ(store->list("")->objects.at(0).size, Bytes(5));
  for (const char* none : {"-5", "", "5 "}) {
    size = none;
    EXPECT_EQ(store->list("").error().kind, ErrorKind::io) << none;
  }
}

TEST(Gcs, an_answer_of_another_range_or_size_is_none) {
  std::string range, body = "hello", size = "5";
  int status = 206;
  StubServer server([&](const StubRequest& request, StubAnswer& answer) {
    HttpHeaders headers = {{"x-goog-generation", "7"}};
    if (!range.empty()) headers.emplace_back("Content-Range", range);
    if (request.asks("alt=media")) return answer.whole(status, body, headers);
    answer.whole(200, fmt::format(R"({{"name": "x/a", "generation": "7", "size": "{}"}})", size));
  });
  StoreAccess access;
  access.gcs = [&] { return Result<GcsAccess>(GcsAccess{.endpoint = server.url(), .part = 256 << 10}); };
  const auto store = open_store({"gs", "bucket/x"}, access).value();
  std::string into(3, ' ');
  const auto read = [&] { return store->get("a", 2, std::as_writable_bytes(std::span(into))); };
  body = "llo";
  range = "bytes 2-4/5";
  EXPECT_TRUE(read().ok());
  EXPECT_EQ(into, "llo");
  for (const char* other : {"bytes 0-2/5", "bytes 20-22/50", "bytes", ""}) {
    range = other;
    EXPECT_EQ(read().error().kind, ErrorKind::io) << other;
  }
  range = "bytes 2-4/5";
  body = "llo, and so on for long";
  EXPECT_TRUE(read().ok()) << "more than was asked for is not taken";
  body = "hello";
  range = "bytes 0-4/5";
  EXPECT_EQ(store->get_whole("a")->bytes, "hello");
  range = "bytes 0-4/-5";
  size = "-5";
  EXPECT_FALSE(store->get_whole("a").ok());
  EXPECT_EQ(store->size("a").error().kind, ErrorKind::io);
  range.clear();
  status = 200;
  EXPECT_EQ(store->get_whole("a")->bytes, "hello") << "an object that is smaller than what is asked for";
  body = some_bytes(100'000);
  EXPECT_EQ(store->get_whole("a").error().kind, ErrorKind::io) << "it ignores the range";
}

// Finds a token only when one is wanted.
class Late : public BearerSource {
 public:
  Result<std::string> token() override { return token_; }
  void refused(const std::string& token) override {
    if (token.empty()) token_ = "late";
  }

 private:
  std::string token_;
};

TEST(Gcs, asks_for_a_token_where_none_was_shown) {
  GcsTwin twin;
  twin.store("runs/a", "1");
  twin.wants_token("late");
  EXPECT_EQ(store_on(twin, std::make_shared<Late>())->get_whole("a")->bytes, "1");
}

}  // namespace
}  // namespace systole

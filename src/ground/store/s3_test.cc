#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <random>

#include "ground/store/cloud_stores.h"
#include "ground/store/testing/s3_twin.h"

namespace systole {
namespace {

using Kind = S3Fault::Kind;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

constexpr const char* kOld = "old";
constexpr const char* kNew = "new, and longer than several parts";

// Writes of "d/a", each of which succeeds once.
struct Write {
  const char* name;
  bool over;  // an object that is there
  std::function<Status(ObjectStore&)> act;
};

Status uploaded(ObjectStore& store, const std::string& first, const char* path, const Precondition& when) {
  const std::unique_ptr<Upload> upload = TRY(store.start_upload(first));
  TRY(upload->append(bytes_of("new, and ")));
  TRY(upload->append(bytes_of("longer than several parts")));
  return upload->complete_as(path, when);
}

const Write kWrites[] = {
    {"put", true,
     [](ObjectStore& store) -> Status {
       TRY(store.put("d/a", kNew));
       return {};
     }},
    {"put_if_absent", false,
     [](ObjectStore& store) -> Status {
       TRY(store.put("d/a", kNew, Precondition::absent()));
       return {};
     }},
    {"put_if_generation", true,
     [](ObjectStore& store) -> Status {
       const Generation seen = TRY(store.get_whole("d/a")).generation;
       TRY(store.put("d/a", kNew, Precondition::is(seen)));
       return {};
     }},
    {"upload", true, [](ObjectStore& store) { return uploaded(store, "d/a", "d/a", {}); }},
    {"upload_if_absent", false,
     [](ObjectStore& store) { return uploaded(store, "d/a", "d/a", Precondition::absent()); }},
    {"upload_by_its_hash", false,
     [](ObjectStore& store) {
       static std::atomic<int> count = 0;  // no two begin at the same path
       return uploaded(store, fmt::format("d/on-its-way-{}", ++count), "d/a", {});
     }},
};

// The bytes of "d/a", or "" if there is none.
std::string text_at(S3Twin& twin) {
  const auto store = twin.open();
  if (!*has_object(*store, "d/a")) return "";
  return *get_text(*store, "d/a");
}

class EveryWrite : public testing::TestWithParam<Write> {
 protected:
  void begin(S3Twin& twin) {
    if (GetParam().over) twin.put("d/a", kOld);
  }
  std::int64_t requests() {
    S3Twin twin;
    begin(twin);
    const auto store = twin.open();
    twin.clear_faults();
    EXPECT_TRUE(GetParam().act(*store).ok());
    return twin.requests();
  }
};
INSTANTIATE_TEST_SUITE_P(Writes, EveryWrite, testing::ValuesIn(kWrites),
                         [](const auto& write) { return write.param.name; });

// From each request on nothing is answered: its writer has died there, or its network.
TEST_P(EveryWrite, is_whole_or_absent_at_every_crash_point) {
  const std::int64_t count = requests();
  for (std::int64_t n = 1; n <= count; ++n) {
    for (const Kind last : {Kind::refused, Kind::answer_lost, Kind::failed}) {
      S3Twin twin;
      begin(twin);
      const auto store = twin.open();
      twin.clear_faults();
      twin.inject({last, n});
      twin.inject({Kind::refused, n + 1, true});
      const Status done = GetParam().act(*store);
      SCOPED_TRACE(fmt::format("request {} of {}: {}", n, count, twin.log()[static_cast<std::size_t>(n) - 1]));
      twin.clear_faults();
      const std::string text = text_at(twin);
      EXPECT_TRUE(text == kNew || text == (GetParam().over ? kOld : "")) << text;
      if (done.ok()) { EXPECT_EQ(text, kNew); }
      ASSERT_TRUE(twin.open()->abort_uploads("").ok());
      EXPECT_EQ(twin.open_uploads(), 0);
      const Status again = GetParam().act(*twin.open());
      EXPECT_TRUE(again.ok() || (text == kNew && again.error().kind == ErrorKind::exists)) << to_string(again.error());
      EXPECT_EQ(text_at(twin), kNew);
    }
  }
}

// One fault at each request, of each kind: the write is done, once, and nothing is left of it.
TEST_P(EveryWrite, survives_any_single_fault) {
  const std::int64_t count = requests();
  for (std::int64_t n = 1; n <= count; ++n) {
    for (const Kind kind : {Kind::refused, Kind::answer_lost, Kind::truncated, Kind::twice, Kind::slow_down,
                            Kind::throttled, Kind::failed, Kind::conflict}) {
      S3Twin twin;
      begin(twin);
      const auto store = twin.open();
      twin.clear_faults();
      twin.inject({kind, n});
      const Status done = GetParam().act(*store);
      SCOPED_TRACE(fmt::format("fault {} at request {} of {}: {}", static_cast<int>(kind), n, count,
                               twin.log()[static_cast<std::size_t>(n) - 1]));
      EXPECT_TRUE(done.ok()) << to_string(done.error());
      EXPECT_EQ(text_at(twin), kNew);
      EXPECT_EQ(twin.keys().size(), 1U);
    }
  }
}

// Several faults at once, of every kind, by seed: an error is allowed, half of an object is not.
TEST_P(EveryWrite, is_whole_or_absent_under_many_faults) {
  int done = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    S3Twin twin;
    begin(twin);
    const auto store = twin.open();
    twin.clear_faults();
    for (std::int64_t n = 1; n < 60; ++n)
      if (random() % 4 == 0)
        twin.inject({static_cast<Kind>(random() % (static_cast<unsigned>(Kind::stale_list) + 1)), n});
    const Status written = GetParam().act(*store);
    twin.clear_faults();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::string text = text_at(twin);
    EXPECT_TRUE(text == kNew || (!written.ok() && text == (GetParam().over ? kOld : ""))) << text;
    ASSERT_TRUE(twin.open()->abort_uploads("").ok());
    EXPECT_EQ(twin.open_uploads(), 0);
    done += written.ok();
  }
  EXPECT_GT(done, 10);
}

TEST(S3, an_error_within_a_good_answer_is_tried_again) {
  S3Twin twin;
  const auto store = twin.open();
  twin.clear_faults();
  twin.inject({Kind::late_error, 9});  // eight parts' requests before
  ASSERT_TRUE(uploaded(*store, "d/a", "d/a", Precondition::absent()).ok());
  EXPECT_EQ(text_at(twin), kNew);
  twin.clear_faults();
  twin.inject({Kind::late_error, 9, true});
  EXPECT_EQ(uploaded(*store, "d/b", "d/b", {}).error().kind, ErrorKind::io);
}

TEST(S3, a_refused_condition_is_told_after_a_lost_answer_too) {
  S3Twin twin;
  const auto store = twin.open();
  twin.put("d/a", "another's");
  twin.clear_faults();
  twin.inject({Kind::answer_lost, 1});
  EXPECT_EQ(store->put("d/a", "mine", Precondition::absent()).error().kind, ErrorKind::exists);
  EXPECT_EQ(store->put("d/a", "mine", Precondition::is({"\"0\""})).error().kind, ErrorKind::busy);
  EXPECT_EQ(store->put("d/b", "mine", Precondition::is({"\"0\""})).error().kind, ErrorKind::busy);
  EXPECT_EQ(text_at(twin), "another's");
}

TEST(S3, damaged_bytes_are_found) {
  S3Twin twin;
  const auto store = twin.open();
  store->put("d/a", kNew).value();
  twin.clear_faults();
  twin.inject({Kind::damaged, 1});
  EXPECT_EQ(store->get_whole("d/a").error().kind, ErrorKind::corrupt);
  std::string read(std::string_view(kNew).size(), ' ');
  twin.inject({Kind::damaged, 3});  // behind its HEAD
  EXPECT_EQ(store->get("d/a", 0, std::as_writable_bytes(std::span(read))).error().kind, ErrorKind::corrupt);
  ASSERT_TRUE(store->get("d/a", 0, std::as_writable_bytes(std::span(read))).ok());
  EXPECT_EQ(read, kNew);
}

TEST(S3, reads_one_version_of_an_object_that_changes) {
  S3Twin twin;
  const auto store = twin.open();
  twin.put("d/a", std::string(60, 'a'));
  std::string read(60, ' ');
  std::jthread other([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      twin.put("d/a", std::string(60, static_cast<char>('a' + i % 26)));
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  for (int i = 0; i < 40; ++i) {
    const Status done = store->get("d/a", 0, std::as_writable_bytes(std::span(read)));
    if (done.ok()) {
      EXPECT_EQ(read, std::string(60, read[0]));
    } else {
      EXPECT_EQ(done.error().kind, ErrorKind::io) << to_string(done.error());
    }
  }
}

TEST(S3, lists_what_is_a_path) {
  S3Twin twin;
  for (const char* key : {"x/a b+c", "x/d/", "x//e", "x/é/f", "x/.systole-g", "y/h"}) twin.put(key, "1");
  const ObjectList all = twin.open("x")->list("").value();
  ASSERT_EQ(all.objects.size(), 2U);
  EXPECT_EQ(all.objects[0].path, "a b+c");
  EXPECT_EQ(all.objects[1].path, "é/f");
  EXPECT_EQ(all.left_out, 2) << "/e and d/, which holds something";
  EXPECT_EQ(all.left_out_name, "/e");
  EXPECT_EQ(*get_text(*twin.open("x"), "a b+c"), "1");
}

TEST(S3, says_what_is_wrong_with_the_bucket) {
  S3Twin twin;
  EXPECT_NE(open_s3("other/x", twin.access()).error().message.find("there is no bucket 'other'"), std::string::npos);
  for (const char* path : {"", "/x", "a b", "twin//x", "twin/../x"})
    EXPECT_EQ(open_s3(path, twin.access()).error().kind, ErrorKind::invalid) << path;
  twin.region = "eu-west-1";
  const Error elsewhere = open_s3("twin", twin.access()).error();
  EXPECT_EQ(elsewhere.message, "the bucket 'twin' is in eu-west-1, and the request went to us-east-1");
  EXPECT_EQ(elsewhere.hint, "AWS_REGION=eu-west-1");
  StubServer html([](const StubRequest&, StubAnswer& answer) { answer.whole(200, "<html><body>Hello</html>"); });
  StoreAccess access = twin.access();
  access.s3 = [&] { return Result<S3Access>(S3Access{.endpoint = html.url()}); };
  const auto store = open_s3("twin", access).value();
  for (const Error& wrong : {store->list("").error(), store->get_whole("a").error(), store->size("a").error(),
                             store->put("a", "1", Precondition::absent()).error()}) {
    EXPECT_EQ(wrong.kind, ErrorKind::io);
    EXPECT_EQ(wrong.hint, "look at AWS_ENDPOINT_URL");
  }
}

// Keys that are handed out once each.
class Rotating : public AwsKeySource {
 public:
  Result<AwsKeys> keys() override {
    return AwsKeys{"AKIDTWIN", "secret/of+the=twin", fmt::format("session {}", number_)};
  }
  void refused(const AwsKeys&) override { ++number_; }

 private:
  int number_ = 0;
};

TEST(S3, asks_for_keys_anew_once_when_they_have_expired) {
  S3Twin twin;
  StoreAccess access = twin.access();
  access.s3 = [&, keys = std::make_shared<Rotating>()] {
    return Result<S3Access>(S3Access{.keys = keys, .endpoint = twin.url()});
  };
  const auto store = open_s3("twin", access).value();
  twin.expire("session 0");
  store->put("d/a", kNew).value();
  EXPECT_EQ(text_at(twin), kNew);
  twin.expire("session 1");
  twin.expire("session 2");
  const Error wrong = store->put("d/a", kOld).error();
  EXPECT_NE(wrong.message.find("ExpiredToken"), std::string::npos) << wrong.message;
  EXPECT_EQ(wrong.message.find("session"), std::string::npos) << "it is secret";
}

TEST(S3, sends_what_the_bucket_asks_for) {
  S3Twin twin;
  StoreAccess access = twin.access();
  access.s3 = [&, made = access.s3]() -> Result<S3Access> {
    S3Access s3 = TRY(made());
    s3.encryption = "aws:kms";
    s3.kms_key = "arn:aws:kms:key";
    s3.requester_pays = true;
    return s3;
  };
  const auto store = open_s3("twin", access).value();
  store->put("d/a", kOld).value();
  ASSERT_TRUE(uploaded(*store, "d/b", "d/b", {}).ok());
  for (const char* key : {"d/a", "d/b"}) {
    EXPECT_EQ(twin.header_of(key, "x-amz-server-side-encryption"), "aws:kms") << key;
    EXPECT_EQ(twin.header_of(key, "x-amz-server-side-encryption-aws-kms-key-id"), "arn:aws:kms:key");
    EXPECT_EQ(twin.header_of(key, "x-amz-request-payer"), "requester");
  }
  const Error wrong = open_s3("twin",
                              [&] {
                                StoreAccess anonymous = twin.access();
                                anonymous.s3 = [&] { return Result<S3Access>(S3Access{.endpoint = twin.url()}); };
                                return anonymous;
                              }())
                          .value()
                          ->put("d/a", "1")
                          .error();
  EXPECT_NE(wrong.hint.find("anonymous"), std::string::npos) << to_string(wrong);
}

TEST(S3, a_list_that_leads_nowhere_is_none) {
  const auto page = [](const std::string& root) {
    return fmt::format("<{0}><IsTruncated>true</IsTruncated></{0}>", root);
  };
  std::atomic<int> lists = 0;
  StubServer server([&](const StubRequest& request, StubAnswer& answer) {
    if (request.method == "HEAD") return answer.bodiless(200, 0, {});
    ++lists;
    answer.whole(200, page(request.query.find("uploads=") == std::string::npos ? "ListBucketResult"
                                                                               : "ListMultipartUploadsResult"));
  });
  StoreAccess access;
  access.s3 = [&] { return Result<S3Access>(S3Access{.endpoint = server.url()}); };
  const auto store = open_s3("twin/x", access).value();
  EXPECT_EQ(store->list("").error().kind, ErrorKind::io);
  EXPECT_EQ(store->abort_uploads("").error().message,
            "the list of s3://twin/x/ says that more follows, and leads nowhere");
  EXPECT_LE(lists, 3);
}

TEST(S3, a_list_with_a_size_that_is_none_is_no_list) {
  std::string size = "<Size>5</Size>";
  StubServer server([&](const StubRequest& request, StubAnswer& answer) {
    if (request.method == "HEAD") return answer.bodiless(200, 0, {});
    answer.whole(200, fmt::format("<ListBucketResult><Contents><Key>x/a</Key>{}</Contents></ListBucketResult>", size));
  });
  StoreAccess access;
  access.s3 = [&] { return Result<S3Access>(S3Access{.endpoint = server.url()}); };
  const auto store = open_s3("twin/x", access).value();
  EXPECT_EQ(store->list("")->objects.at(0).size, Bytes(5));
  for (const char* none : {"<Size>-5</Size>", "<Size/>", ""}) {
    size = none;
    EXPECT_EQ(store->list("").error().kind, ErrorKind::io) << none;
  }
}

TEST(S3, an_absent_bucket_is_told_without_the_password_of_its_server) {
  StubServer server([](const StubRequest&, StubAnswer& answer) { answer.bodiless(404, 0, {}); });
  StoreAccess access;
  const std::string with_password = "http://me:sesame@" + server.url().substr(7);
  access.s3 = [&] { return Result<S3Access>(S3Access{.endpoint = with_password}); };
  const Error absent = open_s3("other", access).error();
  EXPECT_NE(absent.message.find("there is no bucket 'other' at http://"), std::string::npos) << absent.message;
  EXPECT_EQ(to_string(absent).find("sesame"), std::string::npos) << absent.message;
}

}  // namespace
}  // namespace systole

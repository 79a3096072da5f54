// Transfers between a folder and the twins of Cloud Storage and S3: to the same bytes, also after a break, against a
// network that lies, and of objects that change.

#include "ground/store/transfer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ground/base/testing/files.h"
#include "ground/store/testing/faulty_objects.h"
#include "ground/store/testing/gcs_twin.h"
#include "ground/store/testing/s3_twin.h"

namespace systole {
namespace {

Place folder_at(const std::string& path) {
  std::filesystem::create_directories(path);
  return {objects_in(open_posix_store(path).value()), path, "file", path, open_posix_store(path).value()};
}

std::string noise(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint64_t state = 88172645463325252ULL;
  for (char& c : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state);
  }
  return bytes;
}

class TransferTest : public testing::Test {
 protected:
  Place bucket(const std::string& prefix, bool tries_once = false) {
    const std::string place = "bucket/" + prefix;
    return {open_store({"gs", place}, gcs_.access({}, tries_once)).value(), "gs://" + place, "gs"};
  }
  Place s3(const std::string& prefix) { return {s3_.open(prefix), "s3://twin/" + prefix, "s3"}; }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }

  static std::vector<TransferItem> all_of(const Place& from) {
    std::vector<TransferItem> items;
    for (const ObjectEntry& object : from.objects->list("").value().objects)
      items.push_back({&from, object.path, object.path, object.size});
    return items;
  }
  static Result<Transferred> send(const Place& from, const Place& to, TransferOptions options = {}) {
    options.from = from.shown;
    const std::unique_ptr<FileLock> lock = TRY(lock_destination(to));
    const TransferPlan plan = TRY(plan_transfer(all_of(from), to, options));
    return transfer(plan, to, options);
  }

  GcsTwin gcs_;
  S3Twin s3_;
  TemporaryFolder folder_;
};

TEST_F(TransferTest, a_folder_goes_round_and_is_the_same) {
  Place home = folder_at(at("home"));
  const std::map<std::string, std::string> files = {{"a.txt", "alpha"}, {"deep/b", noise(40)}, {"empty", ""}};
  for (const auto& [name, bytes] : files) ASSERT_TRUE(home.objects->put(name, bytes).ok());
  Place in_gcs = bucket("x"), in_s3 = s3("y"), back = folder_at(at("back"));
  EXPECT_EQ(send(home, in_gcs)->sent, 3);
  EXPECT_EQ(send(in_gcs, in_s3)->sent, 3);
  const Transferred staged = send(in_s3, back, {.manifest = true}).value();
  EXPECT_EQ(staged.sent, 3);
  EXPECT_EQ(staged.bytes, Bytes(45));
  EXPECT_TRUE(staged.unchecked.empty());
  for (const auto& [name, bytes] : files) EXPECT_EQ(text_of(at("back/" + name)), bytes) << name;

  // What is there is not sent again; what has another content of the same size is.
  EXPECT_EQ(send(in_s3, back, {.manifest = true})->sent, 0);
  ASSERT_TRUE(home.objects->put("a.txt", "omega").ok());
  EXPECT_EQ(send(home, in_gcs)->sent, 1);
  EXPECT_EQ(gcs_.objects().at("x/a.txt"), "omega");

  const FolderManifest manifest = read_manifest(back).value();
  ASSERT_EQ(manifest.rows.size(), 3U);
  EXPECT_EQ(manifest.rows[0].name, "a.txt");
  EXPECT_TRUE(manifest.rows[0].checked);
  EXPECT_TRUE(verify_folder(back, manifest)->damaged.empty());
  ASSERT_TRUE(back.objects->put("deep/b", noise(40).replace(7, 1, "x")).ok());
  ASSERT_TRUE(back.objects->remove("empty").ok());
  const VerifiedFolder damaged = verify_folder(back, manifest).value();
  ASSERT_EQ(damaged.damaged.size(), 2U);
  EXPECT_NE(damaged.damaged[0].message.find("deep/b"), std::string::npos) << damaged.damaged[0].message;
}

TEST_F(TransferTest, what_broke_off_goes_on_where_it_ended) {
  const std::string big = noise(std::size_t{20} << 20);
  gcs_.store("x/big", big);
  Place to = folder_at(at("to"));
  const Place dying = bucket("x", true);
  const std::int64_t before = gcs_.count();
  gcs_.inject({GcsFault::Kind::refused, before + 75, true});  // the first piece is 64 requests
  EXPECT_FALSE(send(dying, to, {.manifest = true}).ok());
  EXPECT_TRUE(to.objects->list("")->objects.empty()) << "nothing is seen before it is whole";
  EXPECT_EQ(read_manifest(to).error().kind, ErrorKind::not_found);
  gcs_.clear_faults();
  const std::int64_t again = gcs_.count();
  EXPECT_EQ(send(bucket("x"), to, {.manifest = true})->sent, 1);
  EXPECT_LT(gcs_.count() - again, 30) << "the rest of it alone is read";
  EXPECT_TRUE(text_of(at("to/big")) == big);
  EXPECT_EQ(read_manifest(to)->rows.size(), 1U);
  for (const auto& file : std::filesystem::directory_iterator(at("to")))
    EXPECT_EQ(file.path().string().find(".part"), std::string::npos) << file.path();
}

TEST_F(TransferTest, an_object_that_changes_is_of_one_version) {
  const std::string old_bytes(std::size_t{600} << 10, 'o'), new_bytes(std::size_t{600} << 10, 'n');
  gcs_.store("x/a", old_bytes);
  Place to = folder_at(at("to"));
  // A list, the object's facts, then its ranges.
  gcs_.before(gcs_.count() + 4, [&] { gcs_.store("x/a", new_bytes); });
  EXPECT_EQ(send(bucket("x"), to)->sent, 1);
  EXPECT_TRUE(text_of(at("to/a")) == new_bytes);
}

TEST_F(TransferTest, a_network_that_lies_is_not_believed) {
  const std::string bytes = noise(5000);
  gcs_.store("x/a", bytes);
  Place to = folder_at(at("to"));
  const std::int64_t n = gcs_.count();
  gcs_.inject({GcsFault::Kind::flipped, n + 3});
  gcs_.inject({GcsFault::Kind::truncated, n + 5});
  EXPECT_EQ(send(bucket("x"), to)->sent, 1);
  EXPECT_TRUE(text_of(at("to/a")) == bytes);

  gcs_.store("x/b", bytes);
  for (std::int64_t i = gcs_.count() + 4; i < gcs_.count() + 20; i += 2) gcs_.inject({GcsFault::Kind::flipped, i});
  const Result<Transferred> lied = send(bucket("x"), to);
  ASSERT_FALSE(lied.ok());
  EXPECT_EQ(lied.error().kind, ErrorKind::corrupt) << lied.error().message;
  EXPECT_NE(lied.error().message.find("gs://bucket/x/b"), std::string::npos) << lied.error().message;
  EXPECT_FALSE(std::filesystem::exists(at("to/b")));
}

TEST_F(TransferTest, others_are_removed_below_the_destination_alone) {
  Place home = folder_at(at("home"));
  ASSERT_TRUE(home.objects->put("a", "1").ok());
  for (const char* name : {"x/a", "x/old", "x/deep/old", "xx", "y/a"}) gcs_.store(name, "2");
  Place to = bucket("x");
  EXPECT_EQ(send(home, to)->removed, 0);
  EXPECT_EQ(send(home, to, {.remove_others = true})->removed, 2);
  std::string names;
  for (const auto& [name, bytes] : gcs_.objects()) names += name + " ";
  EXPECT_EQ(names, "x/a xx y/a ");
}

TEST_F(TransferTest, refusals_say_where_and_what) {
  gcs_.store("x/a", "1");
  const Place from = bucket("x"), to = folder_at(at("to"));
  std::vector<TransferItem> twice = all_of(from);
  twice.push_back(twice[0]);
  EXPECT_EQ(plan_transfer(twice, to, {}).error().kind, ErrorKind::invalid);
  const auto held = lock_destination(to).value();
  EXPECT_EQ(send(from, to).error().kind, ErrorKind::busy);
  const std::vector<TransferItem> huge = {{&to, "huge", "huge", Bytes((std::int64_t{5} << 40) + 1)}};
  EXPECT_EQ(plan_transfer(huge, s3("z"), {}).error().kind, ErrorKind::does_not_fit);
  EXPECT_EQ(plan_transfer(huge, bucket("z"), {}).error().kind, ErrorKind::does_not_fit);
  EXPECT_TRUE(plan_transfer(huge, folder_at(at("other")), {}).ok());
  gcs_.answers_html();
  const Result<Transferred> html = send(s3("z"), bucket("x"));
  EXPECT_NE(html.error().message.find("what answers is not Cloud Storage"), std::string::npos);
}

TEST_F(TransferTest, what_no_store_states_is_named_unchecked) {
  s3_.holds_checksums = false;
  const auto upload = s3_.open("y")->start_upload("parts").value();
  const std::string bytes = noise(23);
  ASSERT_TRUE(upload->append(std::as_bytes(std::span(bytes))).ok());
  ASSERT_TRUE(upload->complete().ok());
  const Place from = s3("y"), to = folder_at(at("to"));
  const Transferred sent = send(from, to, {.manifest = true}).value();
  EXPECT_EQ(sent.unchecked, std::vector<std::string>{"parts"});
  EXPECT_EQ(text_of(at("to/parts")), bytes);
  EXPECT_FALSE(read_manifest(to)->rows[0].checked);
}

TEST_F(TransferTest, what_lies_behind_links_is_not_removed) {
  for (const char* name : {"x/v3/a", "x/b"}) gcs_.store(name, "1");
  const Place to = folder_at(at("to")), originals = folder_at(at("originals"));
  ASSERT_TRUE(originals.objects->put("mine", "2").ok());
  ASSERT_TRUE(to.objects->put("v2/gone", "3").ok());
  std::filesystem::create_directory_symlink("v3", at("to/latest"));
  std::filesystem::create_directory_symlink(at("originals"), at("to/old"));
  std::filesystem::create_symlink(at("originals/mine"), at("to/one"));
  for (int n = 0; n < 2; ++n) {  // once before what `latest` names is there, and once behind it
    const Transferred sent = send(bucket("x"), to, {.remove_others = true}).value();
    EXPECT_EQ(sent.removed, n == 0 ? 2 : 0) << "v2/gone, and the link `one`";
    EXPECT_EQ(text_of(at("to/latest/a")), "1");
    EXPECT_EQ(text_of(at("to/old/mine")), "2");
    EXPECT_FALSE(std::filesystem::exists(at("to/v2")));
    EXPECT_FALSE(std::filesystem::exists(at("to/one")));
  }
}

TEST_F(TransferTest, a_part_that_nothing_can_check_is_begun_anew) {
  const std::string bytes = noise(std::size_t{20} << 20);
  const Place to = folder_at(at("to"));
  s3_.part = 1 << 20;
  s3_.holds_checksums = false;
  const auto upload = s3_.open("y")->start_upload("big").value();
  ASSERT_TRUE(upload->append(std::as_bytes(std::span(bytes))).ok());
  ASSERT_TRUE(upload->complete().ok());
  const Place from = s3("y");
  s3_.inject({S3Fault::Kind::failed, s3_.requests() + 20, true});  // in the second piece of 16 MiB
  EXPECT_FALSE(send(from, to).ok());
  s3_.clear_faults();
  int parts = 0;
  for (const auto& file : std::filesystem::directory_iterator(at("to"))) {
    if (!file.path().string().ends_with(".part")) continue;
    ++parts;
    std::fstream part(file.path(), std::ios::in | std::ios::out | std::ios::binary);  // as a power cut leaves its tail
    part.seekp(4096);
    part << std::string(4096, '\0');
  }
  ASSERT_EQ(parts, 1);
  ASSERT_TRUE(send(from, to, {.manifest = true}).ok());
  EXPECT_TRUE(text_of(at("to/big")) == bytes);
}

TEST_F(TransferTest, the_manifest_goes_durably_before_anything_changes) {
  gcs_.store("x/a", "1");
  Place to = folder_at(at("to"));
  ASSERT_TRUE(send(bucket("x"), to, {.manifest = true}).ok());
  gcs_.store("x/deep/b", "2");  // the root is not settled for it
  const std::unique_ptr<ObjectStore> under = std::move(to.objects);
  auto watched = std::make_unique<FaultyObjects>(*under);
  const FaultyObjects& seen = *watched;
  to.objects = std::move(watched);
  ASSERT_TRUE(send(bucket("x"), to, {.manifest = true}).ok());
  const std::vector<std::string> calls = seen.calls();
  ASSERT_GE(calls.size(), 3U);
  EXPECT_EQ(calls[0], "remove systole-manifest.json");
  EXPECT_EQ(calls[1], "settle ");
}

TEST_F(TransferTest, a_manifest_of_a_later_version_is_not_read) {
  gcs_.store("x/a", "1");
  const Place to = folder_at(at("to"));
  ASSERT_TRUE(send(bucket("x"), to, {.manifest = true}).ok());
  std::string text = text_of(at("to/systole-manifest.json"));
  text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
  ASSERT_TRUE(to.objects->put("systole-manifest.json", text).ok());
  EXPECT_EQ(read_manifest(to).error().kind, ErrorKind::unsupported);
}

// A folder whose disk has so much room.
class SmallDisk : public FaultyObjects {
 public:
  SmallDisk(std::unique_ptr<ObjectStore> objects, Bytes room)
      : FaultyObjects(*objects), objects_(std::move(objects)), room_(room) {}
  Result<Bytes> free_space() override { return room_; }

 private:
  const std::unique_ptr<ObjectStore> objects_;
  const Bytes room_;
};

TEST_F(TransferTest, what_parts_hold_counts_as_room) {
  const std::string big = noise(std::size_t{20} << 20);
  gcs_.store("x/deep/big", big);
  Place to = folder_at(at("to"));
  gcs_.inject({GcsFault::Kind::refused, gcs_.count() + 75, true});  // behind the first piece of 16 MiB
  EXPECT_FALSE(send(bucket("x", true), to).ok());
  gcs_.clear_faults();
  to.objects = std::make_unique<SmallDisk>(std::move(to.objects), Bytes(5 << 20));
  const Result<Transferred> rest = send(bucket("x"), to);
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  EXPECT_TRUE(text_of(at("to/deep/big")) == big);
  gcs_.store("x/deep/more", big);
  EXPECT_EQ(send(bucket("x"), to).error().kind, ErrorKind::does_not_fit);
}

TEST_F(TransferTest, a_part_of_another_version_goes_where_its_room_is_needed) {
  const std::string old_bytes = noise(std::size_t{20} << 20), new_bytes(std::size_t{20} << 20, 'n');
  gcs_.store("x/big", old_bytes);
  Place to = folder_at(at("to"));
  gcs_.inject({GcsFault::Kind::refused, gcs_.count() + 75, true});  // behind the first piece of 16 MiB
  EXPECT_FALSE(send(bucket("x", true), to).ok());
  gcs_.clear_faults();
  const auto parts = [&] {
    return std::ranges::count_if(std::filesystem::directory_iterator(at("to")),
                                 [](const auto& file) { return file.path().string().ends_with(".part"); });
  };
  ASSERT_EQ(parts(), 1);
  gcs_.store("x/big", new_bytes);
  to.objects = std::make_unique<SmallDisk>(std::move(to.objects), Bytes(3 << 20));
  const auto refused = send(bucket("x"), to);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
  EXPECT_EQ(parts(), 1) << "without it there is not enough room either";
  to = folder_at(at("to"));
  to.objects = std::make_unique<SmallDisk>(std::move(to.objects), Bytes(5 << 20));
  EXPECT_TRUE(send(bucket("x"), to).ok());
  EXPECT_EQ(parts(), 0) << "nothing goes on with it, and its room is enough";
}

}  // namespace
}  // namespace systole

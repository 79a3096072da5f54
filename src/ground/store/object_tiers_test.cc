// The cache in two tiers: what is in memory is read there, each tier keeps its limit, and no kill leaves a torn object.

#include "ground/store/object_tiers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "ground/base/testing/files.h"
#include "ground/store/testing/gcs_twin.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

class ObjectTiersTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directory(shared()); }
  std::string shared() const { return folder_.path() + "/shm"; }
  std::string own() const { return fmt::format("{}/systole-{}", shared(), ::geteuid()); }
  PinnedObject object(const std::string& name, const std::string& bytes) {
    twin_.store("d/" + name, bytes);
    return {store_.get(), name, "gs://bucket/d/" + name, describe_object(*store_, name).value()};
  }
  Result<std::unique_ptr<ObjectTiers>> open(Bytes memory, std::optional<Bytes> disk = {}) const {
    return ObjectTiers::open({folder_.path() + "/disk", disk, memory, shared()});
  }
  std::unique_ptr<ObjectTiers> tiers(Bytes memory, std::optional<Bytes> disk = {}) const {
    return open(memory, disk).value();
  }
  std::unique_ptr<ObjectTiers> with(Bytes memory, const std::vector<PinnedObject>& objects) const {
    std::unique_ptr<ObjectTiers> opened = tiers(memory);
    const Status brought = opened->bring(objects, 2);
    EXPECT_TRUE(brought.ok()) << (brought.ok() ? "" : to_string(brought.error()));
    return opened;
  }
  bool in_memory(const ObjectTiers& tiers, const PinnedObject& object) const {
    return tiers.file_of(object).value().starts_with(own());
  }

  GcsTwin twin_;
  TemporaryFolder folder_;
  std::unique_ptr<ObjectStore> store_ = open_store({"gs", "bucket/d"}, twin_.access()).value();
};

TEST_F(ObjectTiersTest, an_object_in_memory_needs_neither_disk_nor_store) {
  const PinnedObject a = object("a", "some bytes"), b = object("b", "others");
  {
    const auto first = with(kMiB, {a, b});
    EXPECT_TRUE(in_memory(*first, a) && in_memory(*first, b));
    EXPECT_EQ(text_of(first->file_of(a).value()), "some bytes");
  }
  struct stat info {};
  ASSERT_EQ(::stat(own().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  fs::remove_all(folder_.path() + "/disk");
  const std::int64_t asked = twin_.count();
  const auto second = with(kMiB, {a, b});
  EXPECT_EQ(text_of(second->file_of(b).value()), "others");
  EXPECT_EQ(second->known_hash(a), hash128("some bytes"));
  EXPECT_EQ(twin_.count(), asked);

  fs::remove_all(own());  // as after a reboot
  const auto fetched = with(kMiB, {a});
  const std::int64_t once = twin_.count();
  fs::remove_all(own());
  EXPECT_TRUE(in_memory(*with(kMiB, {a}), a));
  EXPECT_EQ(twin_.count(), once) << "it is copied from the disk";
}

TEST_F(ObjectTiersTest, what_is_damaged_in_memory_comes_from_the_disk) {
  const PinnedObject a = object("a", "some bytes"), b = object("b", "others");
  std::string file;
  {
    const auto first = with(kMiB, {a, b});
    file = first->file_of(a).value();
    EXPECT_EQ(first->counts(), (CacheCounts{0, 0, 2, {}, {}, Bytes(16), 0}));
  }
  std::ofstream(file) << "SOME BYTES";
  const std::int64_t asked = twin_.count();
  const auto now = with(kMiB, {a, b});
  EXPECT_TRUE(in_memory(*now, a));
  EXPECT_EQ(text_of(now->file_of(a).value()), "some bytes");
  EXPECT_EQ(now->counts(), (CacheCounts{1, 1, 0, Bytes(6), Bytes(10), {}, 1}));
  EXPECT_EQ(twin_.count(), asked);
}

TEST_F(ObjectTiersTest, memory_takes_what_fits_and_evicts_nothing_that_is_read) {
  const PinnedObject a = object("a", std::string(700, 'a')), b = object("b", std::string(700, 'b')),
                     c = object("c", std::string(300, 'c')), d = object("d", std::string(600, 'd'));
  auto first = with(Bytes(1000), {a, b, c});
  EXPECT_TRUE(in_memory(*first, a) && in_memory(*first, c));
  EXPECT_FALSE(in_memory(*first, b));
  EXPECT_EQ(text_of(first->file_of(b).value()), std::string(700, 'b'));
  EXPECT_FALSE(in_memory(*with(Bytes(1000), {d}), d)) << "all of it is in use";
  EXPECT_TRUE(in_memory(*with(Bytes(1000), {b, c}), c)) << "shared with the first";
  EXPECT_EQ(text_of(first->file_of(a).value()), std::string(700, 'a'));
  first.reset();
  (void)with(Bytes(1000), {c});  // now a is the oldest
  const auto now = with(Bytes(1000), {d});
  EXPECT_TRUE(in_memory(*now, d));
  EXPECT_TRUE(in_memory(*with(Bytes(1000), {c}), c));
  EXPECT_FALSE(in_memory(*with(Bytes(1000), {a}), a));
}

TEST_F(ObjectTiersTest, a_folder_that_others_may_write_is_refused) {
  const auto refused = [&](const std::string& why) {
    const auto opened = open(kMiB);
    ASSERT_FALSE(opened.ok()) << why;
    EXPECT_EQ(opened.error().kind, ErrorKind::unsupported);
    EXPECT_NE(opened.error().message.find(why), std::string::npos) << opened.error().message;
    EXPECT_FALSE(opened.error().hint.empty());
  };
  fs::create_directory(own());
  ASSERT_EQ(::chmod(own().c_str(), 0770), 0);
  refused("has mode 0770");
  ASSERT_EQ(::chmod(own().c_str(), 0700), 0);
  EXPECT_TRUE(open(kMiB).ok());
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(own().c_str(), 12345, 12345), 0);
    refused("belongs to the user 12345");
  }
  fs::remove_all(own());
  fs::create_directory_symlink(folder_.path(), own());
  refused("is not a folder");
}

TEST_F(ObjectTiersTest, no_kill_leaves_a_torn_object) {
  std::vector<PinnedObject> all;
  for (int i = 0; i < 4; ++i)
    all.push_back(object(fmt::format("{}", i), std::string(std::size_t{3} << 20, static_cast<char>('a' + i))));
  (void)with(Bytes(1), all);  // to the disk
  int unfinished = 0;
  for (int i = 0; i < 16; ++i) {
    fs::remove_all(own());
    const pid_t child = ::fork();
    if (child == 0) {
      const auto mine = open(kGiB);
      if (mine.ok()) (void)(*mine)->bring(all, 2);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 * i));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    std::error_code none;
    std::size_t whole = 0;
    for (const auto& file : fs::directory_iterator(own() + "/objects", none)) {
      if (file.path().extension() != ".bytes") continue;
      ++whole;
      EXPECT_EQ(to_hex(hash128(text_of(file.path()))), file.path().stem());
    }
    unfinished += whole < all.size() ? 1 : 0;
    if (i % 8 != 7) continue;
    const auto now = with(kGiB, all);
    for (const PinnedObject& one : all) {
      EXPECT_TRUE(in_memory(*now, one));
      EXPECT_EQ(to_hex(hash128(text_of(now->file_of(one).value()))), to_hex(now->known_hash(one).value()));
    }
  }
  EXPECT_GT(unfinished, 0) << "no child was killed before its end";
}

// A file system of its own in the place of shared memory.
class Mounted {
 public:
  Mounted(std::string place, const std::string& options) : place_(std::move(place)) {
    is_there_ = ::mount("small", place_.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~Mounted() {
    if (is_there_) ::umount2(place_.c_str(), MNT_DETACH);
  }
  bool is_there() const { return is_there_; }
  void grow() const { ASSERT_EQ(::mount("small", place_.c_str(), "tmpfs", MS_REMOUNT, "size=16m,nr_inodes=1k"), 0); }

 private:
  std::string place_;
  bool is_there_ = false;
};

// The room that is asked for in advance counts bytes, and a file takes pages and names: each of these sizes is full at
// another point of the copy.
TEST_F(ObjectTiersTest, memory_that_fills_amid_a_copy_is_done_without_and_keeps_nothing_half_written) {
  std::vector<PinnedObject> all;
  std::vector<std::string> texts;
  for (const std::size_t size : {4097, 4097, 40'000, 4097, 4097, 4097, 60'001, 4097}) {
    texts.emplace_back(size, static_cast<char>('a' + texts.size()));
    all.push_back(object(fmt::format("{}", texts.size()), texts.back()));
  }
  (void)with(Bytes(1), all);  // to the disk
  std::set<std::size_t> copied;
  std::vector<std::string> rooms;
  for (int pages = 1; pages < 64; pages += 4) rooms.push_back(fmt::format("size={}k,nr_inodes=1k", 4 * pages));
  for (int names = 1; names < 30; names += 3) rooms.push_back(fmt::format("size=16m,nr_inodes={}", names));
  for (const std::string& room : rooms) {
    SCOPED_TRACE(room);
    const Mounted small(shared(), room);
    if (!small.is_there()) GTEST_SKIP() << "no file system can be mounted here";
    {
      const auto now = with(kMiB, all);
      std::size_t in = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(text_of(now->file_of(all[i]).value()), texts[i]);
        in += in_memory(*now, all[i]) ? 1 : 0;
      }
      copied.insert(in);
      std::error_code none;
      for (const auto& file : fs::recursive_directory_iterator(own(), none)) {
        const std::string ending = file.path().extension();
        EXPECT_TRUE(ending != ".part" && ending != ".tmp") << file.path();
        if (ending != ".bytes") continue;
        EXPECT_EQ(to_hex(hash128(text_of(file.path()))), file.path().stem());
      }
    }
    small.grow();
    const auto later = with(kMiB, all);
    for (const PinnedObject& one : all) EXPECT_TRUE(in_memory(*later, one));
  }
  EXPECT_GT(copied.size(), 4U) << "it was full at fewer points than meant";
}

TEST_F(ObjectTiersTest, less_room_than_the_limit_is_said) {
  const auto crowded = crowded_memory(Bytes(std::int64_t{1} << 60), shared());
  ASSERT_TRUE(crowded.has_value());
  EXPECT_NE(crowded->message.find("1024 PiB, and "), std::string::npos) << crowded->message;
  EXPECT_NE(crowded->hint.find("MiB"), std::string::npos) << crowded->hint;
  EXPECT_FALSE(crowded_memory(Bytes(1), shared()).has_value());
  EXPECT_EQ(crowded_memory(Bytes(1), shared() + "/none")->kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace systole

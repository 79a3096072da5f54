// The cache of objects: fetched once, shared, evicted by age, never what is held; and after a kill.

#include "ground/store/object_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "ground/base/testing/files.h"
#include "ground/store/testing/gcs_twin.h"
#include "ground/store/testing/s3_twin.h"

namespace systole {
namespace {

class ObjectCacheTest : public testing::Test {
 protected:
  PinnedObject object(const std::string& name, const std::string& bytes) {
    twin_.store("d/" + name, bytes);
    return pinned(name);
  }
  PinnedObject pinned(const std::string& name) {
    return {store_.get(), name, "gs://bucket/d/" + name, describe_object(*store_, name).value()};
  }
  std::unique_ptr<ObjectCache> cache(std::optional<Bytes> limit = {}) const {
    return ObjectCache::open(folder_.path() + "/cache", limit).value();
  }
  static Status bring(ObjectCache& cache, const PinnedObject& object) { return cache.bring(std::span(&object, 1), 2); }
  std::int64_t files(const std::string& ending) const {
    std::int64_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path() + "/cache"))
      count += file.path().string().ends_with(ending) ? 1 : 0;
    return count;
  }
  // Where the reads of ranges since request number `first` begin; 0 too.
  std::set<std::int64_t> begins_of_reads(std::size_t first) const {
    std::set<std::int64_t> begins{0};
    const std::vector<GcsTwinRequest> requests = twin_.requests();
    for (std::size_t i = first; i < requests.size(); ++i) {
      const auto range = requests[i].headers.find("range");
      if (range != requests[i].headers.end()) begins.insert(std::atoll(range->second.c_str() + 6));
    }
    return begins;
  }
  // A process that brings the object into a cache of 1,000 bytes or into one without a limit, with connections of its
  // own, and is killed when it has it.
  pid_t process_that_brings(PinnedObject object, std::optional<Bytes> limit) const {
    const pid_t child = fork();
    if (child != 0) return child;
    const auto own = open_store({"gs", "bucket/d"}, twin_.access()).value();
    object.store = own.get();
    const auto mine = cache(limit);
    (void)mine->bring(std::span(&object, 1), 1);
    ::raise(SIGKILL);
    return child;
  }

  GcsTwin twin_;
  TemporaryFolder folder_;
  std::unique_ptr<ObjectStore> store_ = open_store({"gs", "bucket/d"}, twin_.access()).value();
};

TEST_F(ObjectCacheTest, bytes_are_fetched_once_and_kept_once) {
  const PinnedObject a = object("a", "same bytes"), b = object("b", "same bytes"), c = object("c", "");
  const auto first = cache();
  EXPECT_FALSE(first->known_hash(a).has_value());
  const std::vector<PinnedObject> all{a, b, c, a};
  ASSERT_TRUE(first->bring(all, 2).ok());
  EXPECT_EQ(text_of(first->file_of(a).value()), "same bytes");
  EXPECT_EQ(first->file_of(a).value(), first->file_of(b).value());
  EXPECT_EQ(files(".bytes"), 2);
  const std::int64_t asked = twin_.count();
  const auto second = cache();
  ASSERT_TRUE(second->bring(all, 2).ok());
  EXPECT_EQ(twin_.count(), asked) << "it is there";
  EXPECT_EQ(second->known_hash(b), hash128("same bytes"));
}

// As a disk, or a program, damages it: the size stays.
void damage(const std::string& path, std::int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file << "XXX";
}

TEST_F(ObjectCacheTest, what_is_damaged_is_dropped_and_fetched_again) {
  const std::string bytes(200'000, 'a');
  const PinnedObject a = object("a", bytes), b = object("b", "others"), c = object("c", "the third");
  const std::vector<PinnedObject> all{a, b, c};
  {
    const auto first = cache();
    ASSERT_TRUE(first->bring(all, 2).ok());
    const ObjectCounts counts = first->counts();
    EXPECT_EQ(counts.fetched, 3);
    EXPECT_EQ(counts.fetched_bytes, a.facts.size + b.facts.size + c.facts.size);
    EXPECT_EQ(counts.found, 0);
  }
  const std::string of_a = cache()->file_of(a).value();
  damage(of_a, 199'000);
  std::filesystem::resize_file(cache()->file_of(c).value(), 3);
  const std::int64_t before = twin_.count();
  const auto now = cache();
  ASSERT_TRUE(now->bring(all, 2).ok());
  EXPECT_TRUE(text_of(now->file_of(a).value()) == bytes);
  EXPECT_EQ(text_of(now->file_of(c).value()), "the third");
  EXPECT_EQ(twin_.count(), before + 2);
  const ObjectCounts counts = now->counts();
  EXPECT_EQ(counts.damaged, 2);
  EXPECT_EQ(counts.fetched, 2);
  EXPECT_EQ(counts.fetched_bytes, a.facts.size + c.facts.size);
  EXPECT_EQ(counts.found, 1);
  EXPECT_EQ(counts.found_bytes, b.facts.size);

  damage(of_a, 0);
  const auto kept = cache();
  EXPECT_EQ(kept->keep_what_is_here(all, 2).value().size(), 2U);
  EXPECT_EQ(kept->counts().damaged, 1);
  EXPECT_FALSE(std::filesystem::exists(of_a));
}

TEST_F(ObjectCacheTest, many_that_find_it_damaged_fetch_it_once) {
  const std::string bytes(200'000, 'a');
  const PinnedObject a = object("a", bytes);
  for (int round = 0; round < 4; ++round) {
    std::string file;
    {
      const auto first = cache();
      ASSERT_TRUE(bring(*first, a).ok());
      file = first->file_of(a).value();
    }
    damage(file, 100);
    const std::int64_t before = twin_.count();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const auto mine = cache();
        EXPECT_TRUE(bring(*mine, a).ok());
        EXPECT_TRUE(text_of(mine->file_of(a).value()) == bytes);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(twin_.count(), before + 1) << round;
  }
}

TEST_F(ObjectCacheTest, the_oldest_goes_and_nothing_that_is_held) {
  const PinnedObject a = object("a", std::string(400, 'a')), b = object("b", std::string(400, 'b')),
                     c = object("c", std::string(400, 'c'));
  ASSERT_TRUE(bring(*cache(Bytes(1000)), a).ok());
  ASSERT_TRUE(bring(*cache(Bytes(1000)), b).ok());
  ASSERT_TRUE(bring(*cache(Bytes(1000)), a).ok());  // now b is the oldest
  auto holder = cache(Bytes(1000));
  ASSERT_TRUE(bring(*holder, c).ok());
  EXPECT_EQ(files(".bytes"), 2);
  EXPECT_FALSE(std::filesystem::exists(holder->file_of(b).value()));
  EXPECT_EQ(holder->known_hash(b), hash128(std::string(400, 'b'))) << "its hash is known without its bytes";

  auto other = cache(Bytes(1000));
  const std::vector<PinnedObject> both{a, b};
  const Status refused = other->bring(both, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
  EXPECT_NE(refused.error().hint.find("data.cache.limit"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(holder->file_of(c).value()));
  other = cache(Bytes(1000));  // what is wanted no longer may go
  EXPECT_EQ(bring(*other, object("d", std::string(700, 'd'))).error().kind, ErrorKind::does_not_fit);
  EXPECT_EQ(files(".bytes"), 2) << "without a it would not fit either";
  holder.reset();
  other = cache(Bytes(1000));
  EXPECT_TRUE(other->bring(both, 2).ok());
}

TEST_F(ObjectCacheTest, a_killed_process_holds_nothing_and_its_part_goes_on) {
  const std::string big(std::size_t{40} << 20, 'x');
  const PinnedObject a = object("a", std::string(400, 'a')), b = object("b", std::string(700, 'b'));
  int status = 0;
  const pid_t first = process_that_brings(a, Bytes(1000));
  ASSERT_EQ(::waitpid(first, &status, 0), first);
  EXPECT_EQ(files(".hold"), 1);
  EXPECT_EQ(files(".bytes"), 1);
  EXPECT_TRUE(bring(*cache(Bytes(1000)), b).ok()) << "its hold no longer counts";
  EXPECT_EQ(files(".bytes"), 1);

  const PinnedObject c = object("big", big);
  const std::size_t before = twin_.requests().size();
  twin_.inject({GcsFault::Kind::delayed, twin_.count() + 1, true});
  const pid_t child = process_that_brings(c, {});
  // A part is written in pieces of 16 MiB. Reads are counted by where they begin: a slow one is asked for twice.
  for (int i = 0; i < 60000 && *begins_of_reads(before).rbegin() < (20 << 20); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  twin_.clear_faults();
  EXPECT_EQ(files(".part"), 1);
  const std::size_t again = twin_.requests().size();
  const auto now = cache();
  std::int64_t arrived = 0;
  ASSERT_TRUE(now->bring(std::span(&c, 1), 1, [&](Bytes more) { arrived += more.count(); }).ok());
  EXPECT_EQ(arrived, c.facts.size.count());
  const std::set<std::int64_t> begins = begins_of_reads(again);
  ASSERT_GT(begins.size(), 1U) << "nothing is read";
  EXPECT_GE(*begins.upper_bound(0), 16 << 20) << "the rest of it alone is read";
  EXPECT_TRUE(text_of(now->file_of(c).value()) == big);
  EXPECT_EQ(files(".part"), 0);
}

TEST_F(ObjectCacheTest, processes_that_want_the_same_fetch_it_once) {
  const PinnedObject a = object("a", std::string(3000, 'a'));
  const std::int64_t before = twin_.count();
  twin_.inject({GcsFault::Kind::delayed, before + 1, true});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto mine = cache();
      EXPECT_TRUE(bring(*mine, a).ok());
      EXPECT_EQ(text_of(mine->file_of(a).value()), std::string(3000, 'a'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(twin_.count(), before + 1);
}

TEST_F(ObjectCacheTest, a_version_that_is_gone_or_damaged_has_no_name) {
  const PinnedObject a = object("a", "first");
  twin_.store("d/a", "later");
  EXPECT_EQ(bring(*cache(), a).error().kind, ErrorKind::busy);
  const PinnedObject later = pinned("a");
  twin_.inject({GcsFault::Kind::flipped, twin_.count() + 1, true});
  EXPECT_EQ(bring(*cache(), later).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(files(".bytes"), 0);
  twin_.clear_faults();
  const auto good = cache();
  ASSERT_TRUE(bring(*good, later).ok());
  EXPECT_EQ(text_of(good->file_of(later).value()), "later");
}

TEST_F(ObjectCacheTest, a_part_that_nothing_can_check_is_fetched_anew) {
  S3Twin s3;
  s3.part = 1 << 20;
  s3.holds_checksums = false;
  const auto from = s3.open("d");
  const std::string bytes(std::size_t{20} << 20, 'x');
  const auto upload = from->start_upload("big").value();
  ASSERT_TRUE(upload->append(std::as_bytes(std::span(bytes))).ok());
  ASSERT_TRUE(upload->complete().ok());
  const PinnedObject big{from.get(), "big", "s3://twin/d/big", describe_object(*from, "big").value()};
  s3.inject({S3Fault::Kind::failed, s3.requests() + 18, true});  // in the second piece of 16 MiB
  EXPECT_FALSE(bring(*cache(), big).ok());
  s3.clear_faults();
  ASSERT_EQ(files(".part"), 1);
  for (const auto& file : std::filesystem::directory_iterator(folder_.path() + "/cache")) {
    if (!file.path().string().ends_with(".part")) continue;
    std::fstream part(file.path(), std::ios::in | std::ios::out | std::ios::binary);  // as a power cut leaves its tail
    part.seekp(4096);
    part << std::string(4096, '\0');
  }
  const auto now = cache();
  ASSERT_TRUE(bring(*now, big).ok());
  EXPECT_TRUE(text_of(now->file_of(big).value()) == bytes);
}

}  // namespace
}  // namespace systole

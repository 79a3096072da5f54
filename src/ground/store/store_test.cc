#include "ground/store/store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "ground/base/testing/files.h"
#include "ground/store/testing/faulty.h"
#include "ground/store/unfinished_name.h"

namespace systole {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The contract of Store, the same for every store.
struct Kind {
  const char* name;
  std::function<std::unique_ptr<Store>(const std::string& folder)> make;
};

class AnyStore : public testing::TestWithParam<Kind> {
 protected:
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = GetParam().make(folder_.path());
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, AnyStore,
    testing::Values(Kind{"posix", [](const std::string& f) { return open_posix_store(f).value(); }},
                    Kind{"memory", [](const std::string&) { return make_memory_store(); }},
                    Kind{"faulty",
                         [](const std::string&) -> std::unique_ptr<Store> { return std::make_unique<FaultyStore>(); }}),
    [](const auto& kind) { return kind.param.name; });

TEST_P(AnyStore, writes_appends_and_reads_back) {
  std::unique_ptr<WritableFile> file = store_->create("a.bin").value();
  file->append(bytes_of("hello ")).value();
  file->append({}).value();
  file->append(bytes_of("world")).value();
  file->sync().value();
  file->close().value();
  file->close().value();
  store_->append_to("a.bin").value()->append(bytes_of("!")).value();
  store_->append_to("new.bin").value()->append(bytes_of("n")).value();
  EXPECT_EQ(*read_text(*store_, "a.bin"), "hello world!");
  EXPECT_EQ(*read_text(*store_, "new.bin"), "n");
  EXPECT_EQ(store_->size("a.bin")->count(), 12);
  std::string middle(5, ' ');
  store_->read("a.bin", 6, std::as_writable_bytes(std::span(middle))).value();
  EXPECT_EQ(middle, "world");
  EXPECT_EQ(store_->create("a.bin").ok(), true);
  EXPECT_EQ(store_->size("a.bin")->count(), 0);
}

TEST_P(AnyStore, says_what_is_absent_or_short) {
  EXPECT_EQ(store_->size("no").error().kind, ErrorKind::not_found);
  EXPECT_EQ(read_all(*store_, "no").error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->list("no").error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->create("no/x").error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->rename("no", "yes").error().kind, ErrorKind::not_found);
  EXPECT_FALSE(*store_->exists("no"));
  EXPECT_FALSE(*store_->exists("no/deeper"));
  EXPECT_TRUE(store_->remove("no").ok());
  EXPECT_TRUE(store_->remove("no/deeper").ok());
  write_whole(*store_, "x", "abc").value();
  std::vector<std::byte> four(4);
  EXPECT_EQ(store_->read("x", 0, four).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(store_->read("x", 9, four).error().kind, ErrorKind::corrupt);
  EXPECT_TRUE(store_->read("x", 3, {}).ok());
  EXPECT_EQ(store_->create("x/y").error().kind, ErrorKind::not_found);
  EXPECT_EQ(read_all(*store_, "x", Bytes(2)).error().kind, ErrorKind::does_not_fit);
}

TEST_P(AnyStore, refuses_paths_that_leave_it) {
  for (const char* path : {"/etc/passwd", "../x", "a/../x", "a//b", "./x", "a/.", "..", ""}) {
    EXPECT_EQ(store_->create(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(store_->remove(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(store_->rename(path, "x").error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(store_->size(path).error().kind, ErrorKind::invalid) << path;
    if (*path == '\0') continue;
    EXPECT_EQ(store_->list(path).error().kind, ErrorKind::invalid) << path;
    EXPECT_EQ(store_->exists(path).error().kind, ErrorKind::invalid) << path;
  }
  EXPECT_EQ(store_->create(std::string_view("a\0b", 3)).error().kind, ErrorKind::invalid);
}

TEST_P(AnyStore, keeps_folders) {
  store_->make_dirs("a/b/c").value();
  store_->make_dirs("a/b").value();
  write_whole(*store_, "a/z", "1").value();
  write_whole(*store_, "a/a", "2").value();
  EXPECT_EQ(*store_->list("a"), (std::vector<std::string>{"a", "b/", "z"}));
  EXPECT_EQ(*store_->list("a/"), *store_->list("a"));
  EXPECT_EQ(*store_->list(""), (std::vector<std::string>{"a/"}));
  EXPECT_EQ(store_->remove("a/b").error().kind, ErrorKind::exists);
  EXPECT_EQ(store_->make_dirs("a/z").error().kind, ErrorKind::exists);
  EXPECT_FALSE(store_->create("a/b").ok());
  EXPECT_FALSE(store_->size("a/b").ok());
  store_->remove("a/b/c").value();
  store_->remove("a/b").value();
  EXPECT_EQ(*store_->list("a"), (std::vector<std::string>{"a", "z"}));
}

TEST_P(AnyStore, renames_replace) {
  write_whole(*store_, "x", "new").value();
  write_whole(*store_, "y", "old").value();
  store_->rename("x", "y").value();
  EXPECT_EQ(*read_text(*store_, "y"), "new");
  EXPECT_FALSE(*store_->exists("x"));
  store_->make_dirs("d/e").value();
  EXPECT_FALSE(store_->rename("d", "d/e/f").ok());
  EXPECT_FALSE(store_->rename("y", "d").ok());
  store_->rename("d/e", "moved").value();
  EXPECT_TRUE(*store_->exists("moved"));
  EXPECT_GT(store_->free_space()->count(), 0);
}

TEST_P(AnyStore, writes_whole_what_comes_in_pieces) {
  const auto two = [](Status last) {
    return [last](WritableFile& file) -> Status {
      TRY(file.append(std::as_bytes(std::span("ab", 2))));
      TRY(file.append(std::as_bytes(std::span("cd", 2))));
      return last;
    };
  };
  write_whole(*store_, "x", two({})).value();
  EXPECT_EQ(*read_text(*store_, "x"), "abcd");
  EXPECT_EQ(write_whole(*store_, "y", two(error(ErrorKind::io, "no more"))).error().message, "no more");
  EXPECT_EQ(*store_->list(""), std::vector<std::string>{"x"});
}

TEST_P(AnyStore, links_where_nothing_is) {
  write_whole(*store_, "x", "1").value();
  store_->make_dirs("d").value();
  store_->link("x", "d/y").value();
  EXPECT_EQ(*read_text(*store_, "d/y"), "1");
  write_whole(*store_, "z", "2").value();
  EXPECT_EQ(store_->link("z", "d/y").error().kind, ErrorKind::exists);
  EXPECT_EQ(store_->link("x", "d").error().kind, ErrorKind::exists);
  EXPECT_EQ(store_->link("no", "n").error().kind, ErrorKind::not_found);
  EXPECT_EQ(store_->link("x", "no/n").error().kind, ErrorKind::not_found);
  store_->remove("x").value();
  EXPECT_EQ(*read_text(*store_, "d/y"), "1");
}

TEST_P(AnyStore, locks_a_folder_for_one) {
  store_->make_dirs("d").value();
  Result<std::unique_ptr<FileLock>> held = store_->try_lock("d");
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(store_->try_lock("d").error().kind, ErrorKind::busy);
  EXPECT_TRUE(store_->try_lock("").ok());
  EXPECT_EQ(store_->try_lock("no").error().kind, ErrorKind::not_found);
  held->reset();
  EXPECT_TRUE(store_->try_lock("d").ok());
}

TEST_P(AnyStore, removes_empty_folders_only) {
  store_->make_dirs("d/e").value();
  write_whole(*store_, "x", "1").value();
  EXPECT_EQ(store_->remove_dir("d").error().kind, ErrorKind::exists);
  store_->remove_dir("d/e").value();
  store_->remove_dir("d").value();
  store_->remove_dir("d").value();
  store_->remove_dir("x").value();
  EXPECT_EQ(*store_->list(""), std::vector<std::string>{"x"});
  EXPECT_EQ(store_->remove_dir("../d").error().kind, ErrorKind::invalid);
}

TEST_P(AnyStore, a_tree_copies_whole) {
  store_->make_dirs("a/b").value();
  store_->make_dirs("empty").value();
  write_whole(*store_, "a/b/x", "1").value();
  write_whole(*store_, "y", "2").value();
  const std::unique_ptr<Store> other = make_memory_store();
  copy_tree(*store_, *other).value();
  EXPECT_EQ(*other->list(""), (std::vector<std::string>{"a/", "empty/", "y"}));
  EXPECT_EQ(*read_text(*other, "a/b/x"), "1");
}

TEST(PosixStore, needs_its_folder) {
  const TemporaryFolder folder;
  EXPECT_EQ(open_posix_store(folder.path() + "/no").error().kind, ErrorKind::not_found);
  write_whole(*open_posix_store(folder.path()).value(), "file", "x").value();
  EXPECT_EQ(open_posix_store(folder.path() + "/file").error().kind, ErrorKind::invalid);
}

TEST(PosixStore, does_not_write_through_a_link) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> store = open_posix_store(folder.path()).value();
  write_whole(*store, "target", "kept").value();
  std::filesystem::create_symlink("target", folder.path() + "/link");
  EXPECT_EQ(store->create("link").error().kind, ErrorKind::io);
  EXPECT_EQ(*read_text(*store, "link"), "kept");
}

TEST(PosixStore, says_that_the_disk_is_full) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const std::unique_ptr<Store> store = open_posix_store("/dev").value();
  std::unique_ptr<WritableFile> file = store->append_to("full").value();
  const Status written = file->append(bytes_of("x"));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::no_space);
  EXPECT_NE(written.error().hint.find("df -h"), std::string::npos);
}

TEST(PosixStore, says_that_the_folder_is_read_only) {
  const TemporaryFolder folder;
  std::string place = folder.path();
  std::filesystem::permissions(place, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  if (::geteuid() == 0) place = "/proc/self";  // root may write everywhere else
  const Result<std::unique_ptr<WritableFile>> made = open_posix_store(place).value()->create("x");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  ASSERT_FALSE(made.ok());
  if (::geteuid() == 0) return;  // /proc answers ENOENT
  EXPECT_EQ(made.error().kind, ErrorKind::io);
  EXPECT_FALSE(made.error().hint.empty());
}

// Nor does it write into a user's file of such a name.
TEST(WriteWhole, what_a_killed_writer_left_is_removed_and_nothing_else) {
  const auto store = make_memory_store();
  for (const char* name : {".out.77-7ffe01.tmp", ".out.jsonl.77-7ffe01.tmp", ".out.notes.tmp", ".out..tmp", "out"})
    write_whole(*store, name, std::string_view("x")).value();
  remove_unfinished(*store, "out").value();
  EXPECT_EQ(store->list("").value(),
            (std::vector<std::string>{".out..tmp", ".out.jsonl.77-7ffe01.tmp", ".out.notes.tmp", "out"}));
}

TEST(WriteWhole, is_apart_from_others_that_write_the_same_file) {
  const auto store = make_memory_store();
  store->make_dirs("f").value();
  write_whole(*store, "f/a.tmp", "mine").value();
  const auto write = [&](std::string_view text) {
    return write_whole(*store, "f/a", [&, text](WritableFile& file) -> Status {
      TRY(file.append(std::as_bytes(std::span(text))));
      return text == "one" ? write_whole(*store, "f/a", std::string_view("two")) : Status();
    });
  };
  write("one").value();
  EXPECT_EQ(read_text(*store, "f/a").value(), "one");
  EXPECT_EQ(read_text(*store, "f/a.tmp").value(), "mine");
}

TEST(WriteWhole, leaves_nothing_behind_when_it_fails) {
  FaultyStore store;
  write_whole(store, "a", "old").value();
  store.limit_space(Bytes(5));
  const Status written = write_whole(store, "a", "much too long");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::no_space);
  EXPECT_EQ(*store.list(""), (std::vector<std::string>{"a"}));
  EXPECT_EQ(*read_text(store, "a"), "old");
}

}  // namespace
}  // namespace systole

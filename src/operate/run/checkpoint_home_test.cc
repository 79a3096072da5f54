#include "operate/run/checkpoint_home.h"

#include <gtest/gtest.h>

#include "ground/store/testing/faulty_objects.h"

namespace systole {
namespace {

CheckpointHome home_in_memory() { return home_at(read_store_uri("memory:").value()).value(); }

TEST(CheckpointHome, without_a_lock_is_of_the_run_that_was_first) {
  const CheckpointHome home = home_in_memory();
  EXPECT_EQ(home.local, "");
  EXPECT_EQ(lock_home(home).error().kind, ErrorKind::unsupported);
  ASSERT_TRUE(own_home(home, "/runs/a"));
  EXPECT_TRUE(own_home(home, "/runs/a")) << "when it goes on";
  const Status other = own_home(home, "/runs/b");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, ErrorKind::busy);
  EXPECT_NE(other.error().message.find("is of the run '/runs/a'"), std::string::npos) << other.error().message;
  EXPECT_TRUE(checkpoint::list_steps(home.folder).value().empty()) << "its owner is no checkpoint";
}

TEST(CheckpointHome, is_owned_although_the_answer_was_lost) {
  CheckpointHome home = home_in_memory();
  const std::shared_ptr<ObjectStore> under = home.folder.store;
  const auto faulty = std::make_shared<FaultyObjects>(*under);
  home.folder.store = faulty;
  faulty->inject({ObjectFault::Kind::answer_lost, 1});
  EXPECT_TRUE(own_home(home, "/runs/a"));
  EXPECT_EQ(own_home(home, "/runs/b").error().kind, ErrorKind::busy);
}

}  // namespace
}  // namespace systole

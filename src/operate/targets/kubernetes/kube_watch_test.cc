// Watches and log streams across interruptions.
#include "operate/targets/kubernetes/kube_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "operate/targets/kubernetes/kube_log.h"
#include "operate/targets/kubernetes/testing/kube_stub.h"

namespace systole {
namespace {

constexpr const char* kPods = "/api/v1/namespaces/team/pods";

Node pod(const std::string& name, const std::string& state = "{ running: {} }") {
  return parse_yaml(
             fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{ name: {}, namespace: team, labels: {{ run: a }} }}\n"
                         "status: {{ phase: Running, containerStatuses: [{{ name: systole, state: {} }}] }}\n",
                         name, state),
             "test")
      .value();
}

struct Streams : testing::Test {
  Streams() { put("p0"); }
  void put(const std::string& name) { stub_.put(fmt::format("{}/{}", kPods, name), pod(name)); }
  // Watches until `count` events came; returns them. `each` gets the number of the event.
  std::string watched(int count, const std::function<void(int)>& each) {
    std::string told;
    int n = 0;
    const Status ended = watch(*api_, {.path = kPods, .labels = "run=a"}, [&](const KubeEvent& event) {
      const char* kinds[] = {"listed", "present", "removed"};
      told += fmt::format("{} {}\n", kinds[static_cast<int>(event.kind)], text_at(event.object, {"metadata", "name"}));
      each(++n);
      return n < count;
    });
    EXPECT_TRUE(ended.ok()) << (ended.ok() ? "" : ended.error().message);
    return told;
  }
  KubeStub stub_;
  std::unique_ptr<Clock> clock_ = real_clock();
  std::unique_ptr<KubeApi> api_ = stub_.api(*clock_);
};

TEST_F(Streams, a_watch_tells_what_is_there_and_what_changes) {
  EXPECT_EQ(watched(5,
                    [&](int n) {
                      if (n == 2) put("p1");
                      if (n == 3) put("p1");
                      if (n == 4) stub_.take_away(fmt::format("{}/p0", kPods));
                    }),
            "listed \npresent p0\npresent p1\npresent p1\nremoved p0\n");
}

TEST_F(Streams, a_watch_that_is_cut_goes_on_where_it_was) {
  EXPECT_EQ(watched(4,
                    [&](int n) {
                      if (n == 2) stub_.cut_a_watch(), put("p1");
                      if (n == 3) stub_.cut_a_watch(), put("p2");
                    }),
            "listed \npresent p0\npresent p1\npresent p2\n");
  EXPECT_GE(std::ranges::count(stub_.asked(), std::string("GET ") + kPods), 3) << "one list, and more than one watch";
}

TEST_F(Streams, what_the_server_has_forgotten_is_listed_anew) {
  EXPECT_EQ(watched(5,
                    [&](int n) {
                      if (n == 2) put("p1"), stub_.forget_history();
                    }),
            "listed \npresent p0\nlisted \npresent p0\npresent p1\n");
}

TEST_F(Streams, a_watch_survives_a_server_that_is_begun_again) {
  std::jthread restarts;
  EXPECT_EQ(watched(3,
                    [&](int n) {
                      if (n != 2) return;
                      restarts = std::jthread([&] {
                        const int port = stub_.port();
                        stub_.stop();
                        std::this_thread::sleep_for(std::chrono::milliseconds(300));
                        stub_.start(port);
                        put("p1");
                      });
                    }),
            "listed \npresent p0\npresent p1\n");
}

TEST_F(Streams, a_watch_that_is_refused_ends) {
  stub_.on([](const StubRequest& request, StubAnswer& answer) {
    if (!request.asks("watch=true")) return false;
    KubeStub::refuse(answer, 403, "Forbidden", "you may not");
    return true;
  });
  EXPECT_EQ(watch(*api_, {.path = kPods}, [](const KubeEvent&) { return true; }).error().kind, ErrorKind::invalid);
}

TEST_F(Streams, a_watch_ends_after_its_time_or_when_it_is_cancelled) {
  EXPECT_TRUE(watch(*api_, {.path = kPods, .longest = Seconds(0.5)}, [](const KubeEvent&) { return true; }).ok());
  int asked = 0;
  EXPECT_TRUE(watch(*api_, {.path = kPods, .cancelled = [&] { return ++asked > 3; }}, [](const KubeEvent&) {
                return true;
              }).ok());
}

// A log in which several lines have the same time, from a server that sends a limited number of bytes per stream.
struct LogStreams : Streams {
  LogStreams() {
    for (int i = 0; i < 40; ++i) log_.push_back(fmt::format("2026-01-01T00:00:{:02}.5Z line {}\n", i / 3, i));
    stub_.on([this](const StubRequest& request, StubAnswer& answer) {
      if (!request.path.ends_with("/p0/log")) return false;
      std::string text;
      for (const std::string& line : log_)
        if (request.query.find("sinceTime=") == std::string::npos || line.substr(17, 2) >= seconds_of(request.query))
          text += line;
      const bool whole = text.size() <= piece_ || !request.asks("follow=true");
      answer.begin();
      answer.piece(whole ? text : text.substr(0, piece_));
      if (whole && request.asks("follow=true") && !ended_) answer.wait([this] { return ended_.load(); });
      if (whole) answer.end();
      return true;
    });
  }
  static std::string seconds_of(const std::string& query) {  // sinceTime=2026-01-01T00%3A00%3A05.000Z
    const std::size_t at = query.find("sinceTime=");
    return query.substr(at + 10 + 21, 2);
  }
  std::string all() const {
    std::string text;
    for (const std::string& line : log_) text += line.substr(line.find(' ') + 1);
    return text;
  }
  void end() {
    ended_ = true;
    stub_.put(fmt::format("{}/p0", kPods), pod("p0", "{ terminated: { exitCode: 0 } }"));
  }
  std::vector<std::string> log_;
  std::size_t piece_ = 333;
  std::atomic<bool> ended_ = false;
  LogLines lines_;
};

TEST_F(LogStreams, a_stream_that_is_cut_again_and_again_gives_each_line_once) {
  std::string text;
  ASSERT_TRUE(follow_log(*api_, {"team", "p0", "systole"}, lines_,
                         [&](const std::string& more) {
                           text += more;
                           if (text.size() == all().size()) end();
                           return true;
                         },
                         {})
                  .ok());
  EXPECT_EQ(text, all());
}

TEST_F(LogStreams, what_is_there_is_read_and_then_what_is_new) {
  EXPECT_EQ(read_log(*api_, {"team", "p0", "systole"}, lines_).value(), all());
  log_.push_back("2026-01-01T00:00:13.5Z more\n");
  log_.push_back("2026-01-01T00:00:14.5Z and more");
  EXPECT_EQ(read_log(*api_, {"team", "p0", "systole"}, lines_).value(), "more\nand more\n");
}

TEST_F(LogStreams, a_pod_that_is_gone_ends_it) {
  stub_.take_away(fmt::format("{}/p0", kPods));
  EXPECT_TRUE(follow_log(*api_, {"team", "p0", "systole"}, lines_, [](const std::string&) { return true; }, {}).ok());
}

TEST(LogLines, lines_of_one_time_are_told_apart_by_their_number) {
  LogLines lines;
  EXPECT_EQ(lines.begin(), "");
  EXPECT_EQ(lines.take("2026-01-01T00:00:01.1Z a\n2026-01-01T00:00:01.1Z a\n2026-01-01T00:00:01.1Z b"), "a\na\n");
  EXPECT_EQ(lines.begin(), "2026-01-01T00:00:01.000Z");
  EXPECT_EQ(lines.take("2026-01-01T00:00:01.0Z z\n2026-01-01T00:00:01.1Z a\n2026-01-01T00:00:01.1Z a\n"), "");
  EXPECT_EQ(lines.take("2026-01-01T00:00:01.1Z b\n2026-01-01T00:00:02Z c"), "b\n");
  EXPECT_EQ(lines.rest(), "c\n");
  EXPECT_EQ(lines.take("no time here\n"), "no time here\n");
}

}  // namespace
}  // namespace systole

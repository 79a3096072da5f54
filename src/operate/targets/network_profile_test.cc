#include "operate/render/network_profile.h"

#include <gtest/gtest.h>

#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"
#include "operate/render/testing/builtin_facts.h"
#include "operate/targets/job_targets.h"

namespace systole {
namespace {

Result<Rendered> on_slurm(const std::string& accelerators, std::vector<std::string> more = {}) {
  more.push_back("resources.accelerators=" + accelerators);
  const std::string path = std::string(SYSTOLE_SOURCE_DIR) + "/examples/ddp.yaml";
  const Workload w = read_workload(read_text_file(path).value(), path, {.sets = more}).value();
  RenderRequest ask{.target = find_job_target_row("slurm"), .workload = w, .facts = builtin_facts()};
  ask.workload_file = {to_yaml(w), std::string(64, '1')};
  ask.program_sha256 = std::string(64, '2');
  ask.version = "systole";
  ask.place = "here";
  return render(ask);
}

std::string start_of(const Rendered& made) { return made.files[1].text; }
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(NetworkProfile, slurm_has_the_names_of_virtual_machines) {
  const std::string high = start_of(on_slurm("a3-highgpu-8g:2").value());
  EXPECT_TRUE(has(high, "export NCCL_SOCKET_IFNAME=enp0s12 # "));
  EXPECT_TRUE(has(high, "export NCCL_NET=GPUDirectTCPX_v7 # "));
  EXPECT_TRUE(has(high, "NCCL_GPUDIRECTTCPX_TX_BINDINGS='enp6s0:8-21,112-125;enp12s0:")) << "';' ends a command";
  EXPECT_FALSE(has(high, "eth0"));
  const std::string mega = start_of(on_slurm("a3-megagpu-8g:2").value());
  EXPECT_TRUE(has(mega, "export NCCL_LIB_DIR=/var/lib/tcpxo/lib64"));
  EXPECT_TRUE(has(mega, "$NCCL_LIB_DIR/nccl-env-profile.sh"));
  EXPECT_TRUE(has(start_of(on_slurm("a3-ultragpu-8g:2").value()), "NCCL_SOCKET_IFNAME=enp0s19,enp192s20"));
  EXPECT_FALSE(has(start_of(on_slurm("a2-highgpu-8g:2").value()), "NCCL_SOCKET_IFNAME")) << "not known: NCCL looks";
  EXPECT_FALSE(has(start_of(on_slurm("a3-highgpu-8g:1").value()), "NCCL")) << "one machine meets nobody";
}

TEST(NetworkProfile, env_wins_with_a_warning_that_names_both) {
  const Rendered made = on_slurm("a3-megagpu-8g:2", {"env={NCCL_FASTRAK_CTRL_DEV: bond0}"}).value();
  EXPECT_FALSE(has(start_of(made), "export NCCL_FASTRAK_CTRL_DEV"));
  ASSERT_FALSE(made.warnings.empty());
  EXPECT_EQ(made.warnings[0],
            "env: NCCL_FASTRAK_CTRL_DEV is bond0; a3-megagpu-8g would have enp0s12: the plugin's control traffic too");
}

// The node's script is bash and start.sh is sh: the script runs first, once, and start.sh sees its exports.
TEST(NetworkProfile, the_nodes_script_is_run_before_and_once) {
  NetworkProfile profile;
  std::string folder = "/tmp/systole-network-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  profile.script = folder + "/env.sh";
  profile.library_path = "/plug in";
  const auto write = [&](const std::string& name, const std::string& text) {
    std::FILE* file = std::fopen((folder + "/" + name).c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs(text.c_str(), file);
    std::fclose(file);
  };
  write("start.sh", "#!/bin/sh\nset -eu\n" + network_shell(profile) + "echo \"$FROM_SCRIPT $LD_LIBRARY_PATH $$\"\n");
  const auto run = [&] {
    Command command;
    command.argv = {"/bin/sh", "-c", "echo $$; LD_LIBRARY_PATH=/image exec /bin/sh " + folder + "/start.sh"};
    return run_captured(std::move(command)).value();
  };
  const Captured none = run();
  EXPECT_EQ(none.exit.code, 3);
  EXPECT_TRUE(has(none.err, " has no " + profile.script)) << none.err;
  write("env.sh", "[[ yes == y* ]] && export FROM_SCRIPT=${FROM_SCRIPT:-}told; [[ no == y* ]]\n");
  const Captured told = run();
  EXPECT_EQ(told.exit.code, 0) << told.err;
  const std::string process = told.out.substr(0, told.out.find('\n'));
  EXPECT_EQ(told.out, process + "\ntold /plug in:/image " + process + "\n") << "the same process: signals reach it";
}

}  // namespace
}  // namespace systole

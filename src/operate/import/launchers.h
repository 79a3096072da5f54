#pragma once
// Programs that start programs, each parsed from the words after its name.

#include <span>
#include <string>
#include <vector>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

// What precedes the program, once per rank.
struct Setup {
  std::vector<std::string> lines;   // shell code
  std::vector<ShellWord> wrappers;  // "uv run", before its words
  bool login = false;               // in a login shell
  int depth = 0;                    // nesting of programs and scripts
};

// Reads the program that ranks run. Launchers are parsed; other programs are taken unchanged. Notes what is
// unsupported.
void read_program(std::span<const ShellWord> words, const Setup& setup, Draft& draft);
// Whether a program of this name (program_name) starts another one, so that its line defines the workload.
bool is_launcher(const std::string& name);
bool is_python(const std::string& name);
// The launcher named in a script; empty: no known one.
std::string launcher_in(std::string_view script);
// Whether the words are torchrun's, by name or as a Python module.
bool is_torchrun(std::span<const ShellWord> words);

void read_torchrun(std::span<const ShellWord> words, const Setup& setup, Draft& draft);  // the words after `torchrun`
void read_srun(std::span<const ShellWord> words, const Setup& setup, Draft& draft);
void read_torchx(std::span<const ShellWord> words, Draft& draft);
// `alone`: nothing else in the script starts a program or creates machines.
void read_gcloud(std::span<const ShellWord> words, bool alone, Draft& draft);
// Whether a gcloud line creates a job's machines.
bool makes_machines(std::span<const ShellWord> words);

// Sets the words as the workload's command. Words with shell expansions are expanded at run time.
void set_command(std::vector<ShellWord> words, Setup setup, const std::string& from, Draft& draft);
// A word without expansions.
ShellWord plain_word(std::string_view text);

}  // namespace systole

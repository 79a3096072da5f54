#pragma once
// Programs that start programs, each from the words behind its name.

#include <span>
#include <string>
#include <vector>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

// What comes in front of the program, once a rank.
struct Setup {
  std::vector<std::string> lines;   // of shell
  std::vector<ShellWord> wrappers;  // "uv run", in front of its words
  bool login = false;               // in a shell that reads the profile
  int depth = 0;                    // of programs and scripts that name each other
};

// The program that ranks run, where it is one: whoever starts others is asked what they are, others are taken as they
// stand. Notes what cannot be.
void read_program(std::span<const ShellWord> words, const Setup& setup, Draft& draft);
// Whether a program of this name (program_name) starts one, so that its line is the workload's.
bool is_launcher(const std::string& name);
bool is_python(const std::string& name);
// The launcher that a script names; empty: none that is known.
std::string launcher_in(std::string_view script);
// Whether the words are torchrun's, by name or as a module of python's.
bool is_torchrun(std::span<const ShellWord> words);

void read_torchrun(std::span<const ShellWord> words, const Setup& setup, Draft& draft);  // behind `torchrun`
void read_srun(std::span<const ShellWord> words, const Setup& setup, Draft& draft);
void read_torchx(std::span<const ShellWord> words, Draft& draft);
// `alone`: nothing else of the script starts a program or makes machines.
void read_gcloud(std::span<const ShellWord> words, bool alone, Draft& draft);
// Whether a line of gcloud's makes the machines of a job.
bool makes_machines(std::span<const ShellWord> words);

// The words as the workload's command. Where a shell would expand some, it does so where they run.
void set_command(std::vector<ShellWord> words, Setup setup, const std::string& from, Draft& draft);
// A word that says `text` and nothing else.
ShellWord plain_word(std::string_view text);

}  // namespace systole

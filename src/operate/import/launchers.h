#pragma once
// Programs that start programs, each from the words behind its name.

#include <span>
#include <string>
#include <vector>

#include "operate/import/draft.h"
#include "operate/import/shell_words.h"

namespace systole {

// What comes in front of the program, once a rank: lines of shell.
using Setup = std::vector<std::string>;

// The program that ranks run, where it is one: whoever starts others is asked what they are, others are taken as they
// stand. Notes what cannot be.
void read_program(std::span<const ShellWord> words, const Setup& setup, Draft& draft);
// Whether `name` starts a program, so that its line is the workload's.
bool is_launcher(const std::string& name);

void read_torchrun(std::span<const ShellWord> words, const Setup& setup, Draft& draft);  // behind `torchrun`
void read_srun(std::span<const ShellWord> words, const Setup& setup, Draft& draft);
void read_torchx(std::span<const ShellWord> words, Draft& draft);
void read_gcloud(std::span<const ShellWord> words, Draft& draft);

// The words as the workload's command. Where a shell would expand some, it does so where they run.
void set_command(std::vector<ShellWord> words, const Setup& setup, const std::string& from, Draft& draft);
// A word that says `text` and nothing else.
ShellWord plain_word(std::string_view text);

}  // namespace systole

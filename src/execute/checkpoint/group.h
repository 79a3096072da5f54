#pragma once
// The writers of one checkpoint, of which each writes what it owns. They meet in the folder and nowhere else:
//
//   parts/claim.json                  the launch and generation that may save here; written as a generation begins
//   parts/generation-<launch>-<n>     that this generation has begun; empty, never written over
//   parts/<save>/part-<rank>.json     "my chunks are safe, these are my pieces", or why there are none (part.h)
//   parts/<save>/outcome.json         how the save ended, by rank 0, when it has swept
//
//   every rank   asks whether the claim is still its own, writes its chunks, then its part
//   rank 0       waits for the parts of this very save, commits one manifest of all, sweeps, tells the outcome
//   the others   wait for the outcome, so that nobody begins the next save while rank 0 sweeps
//
// A save is <launch>-<generation>-<number>: a part of another launch, an older generation or an earlier attempt
// has another name and is never taken for this one's. None of these files looks like a checkpoint; sweeping removes
// those of saves that are over.
//
// A process that belongs to an older generation and wakes up late finds the newer claim before it writes, before it
// commits and before each file that it would remove. Between that look and the act itself is no lock: should it be
// stopped exactly there, the worst is a manifest whose chunks are gone, over which restoring walks back.

#include <cstdint>
#include <string>

#include "execute/checkpoint/folder.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole::checkpoint {

// Which of how many writers this process is. The default is the one and only writer, who needs no claim.
struct SaveGroup {
  int rank = 0, world = 1;
  std::string launch;  // letters, digits, '-': no other launch has the same; empty: no claim, and then world is 1
  std::int64_t generation = 0;
  Clock* clock = nullptr;  // REQUIRED when there are others
  Seconds patience{120};   // how long a rank may be late
  Seconds poll{0.01};      // from one look into the folder to the next

  bool alone() const { return world == 1; }
};

// Errors: invalid (a rank outside the world, no launch or clock although there are others, a launch that is no name).
Status check(const SaveGroup& group);

// The name of its n-th save. All ranks count alike, from 1 in each generation.
std::string save_name(const SaveGroup& group, std::int64_t number);

// Takes the folder for this launch and generation, from whoever had it; durable on return. One process of a generation
// does it as the generation begins, before any of its ranks saves. Errors: busy (a newer generation of this launch has
// the folder), io.
Status claim(const Folder& folder, const SaveGroup& group);

// The folder is this generation's. Rank 0 takes it where it is nobody's or an older generation's, also from one that
// woke up in the middle of claiming it; the others take that for theirs. Errors: busy, saying whose it is now; corrupt,
// io.
Status check_claim(const Folder& folder, const SaveGroup& group);

}  // namespace systole::checkpoint

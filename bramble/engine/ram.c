/* The one place where the variables of the RAM table are defined; ram.h is generated from shared/game/ram/ram.tsv. */
#define RAM_HERE
#include "ram.h"

/* What loading a room (load.c) leaves for playing in it (rooms.c). */
#pragma once
#include "game.h"

enum { CELLS = 128, SHUTTERS = 6 };
/* Parts of loading a room, each of which fits in a frame; after the last comes 0. */
enum { HEAD_TO_LOAD = 251, UPPER_HALF, LOWER_HALF, RECORDS_TO_LOAD, DOORS_TO_OPEN };

extern u8 room_theme, solve_by; /* SOLVE_* */
extern u8 button_bits;          /* a bit for each floor button and switch of the room */
extern Spot spots[SPOTS];
extern Warp warps[WARPS];
extern u8 shutters[SHUTTERS];
extern u8 shutter_count, spot_count, warp_count;

u8 door_bit(u8 pos);
void clear_objects(void);
void load_part(u8 part);
void load_room(void);

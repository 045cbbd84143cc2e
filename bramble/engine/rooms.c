/* Rooms: walking over their edges, warps, doors and what opens them. Neighbours differ by 1 or 16 in their number. */
#include "load.h"

enum { SCROLL_COLUMNS = 20, SCROLL_ROWS = 16 };
enum { FIRST_X = 6, LAST_X = 154, FIRST_Y = 6, LAST_Y = 121 };

static u8 scroll_step; /* a part of loading, then steps of 8 pixels */

u8 *room_flags(void) {
    if (!active_group) return room_flags_overworld + active_room;
    if (active_group < 4) return room_flags_subrosia_indoor + active_room;
    return (active_group == 4 ? room_flags_group4 : room_flags_group5) + active_room;
}

/* Data of a room, or 0 when the world has none there. */
const u8 *room_find(u8 group, u8 room) {
    const RoomEntry *entry = WORLD->rooms;
    for (; entry->group != 255; ++entry)
        if (entry->room == room && entry->group == group) return entry->data;
    return 0;
}

/* ---- getting into a room ---- */

static void load_dungeon_grid(void) {
    u8 n, first = active_room & 0x88, room;
    if (dungeon_index == 255) return;
    for (n = 0; n < 64; ++n) {
        room = first + (n & 7) + ((n & 0x38) << 1);
        if (!room_find(active_group, room)) room = 0;
        IO(IO_WRAM_BANK) = 2;
        dungeon_layout[n] = room;
        IO(IO_WRAM_BANK) = 1;
        if ((n & 7) == 7) frame_end();
    }
}

static void set_respawn(u8 direction) {
    death_respawn_group = active_group;
    death_respawn_room = active_room;
    death_respawn_season = season;
    death_respawn_dir = direction;
    death_respawn_y = hero.y;
    death_respawn_x = hero.x;
}

static void transition_begin(void) {
    scroll_mode = 2;
    transition_state = 1;
    palette_fade_mode = 1;
    cutscene_index = 3;
    draw_sprites();
    palette_white();
    frame_end();
}

static void transition_end(void) {
    draw_room();
    palette_theme();
    scroll_mode = 1;
    transition_state = 2;
    palette_fade_mode = 0;
    cutscene_index = 1;
    hud_stale = 1;
}

/* Appear somewhere else: stairs, doors, caves, the start of the game, life after death. */
void room_enter(u8 group, u8 room, u8 pos, u8 direction) {
    u8 was = dungeon_index;
    warp_dest_group = group;
    warp_dest_room = room;
    warp_dest_pos = pos;
    warp_trigger = 0;
    sound(SOUND_STAIRS);
    active_group = group;
    active_room = room;
    transition_begin();
    load_room();
    hero_place(pos, direction);
    entered_warp_pos = pos;
    set_respawn(direction);
    if (dungeon_index != was) load_dungeon_grid();
    transition_end();
}

/* The season changed: show the same room as it is now. */
void room_reload(void) {
    transition_begin();
    load_room();
    transition_end();
}

/* Walk over the edge of the room: the next one scrolls in, 8 pixels a frame. */
void cross_start(u8 direction) {
    u8 next = active_room + (direction == UP ? -16 : direction == DOWN ? 16 : direction == LEFT ? -1 : 1);
    if (!room_find(active_group, next)) return;
    active_room = next;
    transition_direction = direction;
    scroll_mode = 8;
    transition_state = 5;
    cutscene_index = 0;
    menu_disabled = 1;
    scroll_step = HEAD_TO_LOAD;
    clear_objects();
    if (direction == RIGHT) camera_column += SCROLL_COLUMNS;
    else if (direction == LEFT) camera_column -= SCROLL_COLUMNS;
    else if (direction == DOWN) camera_row += SCROLL_ROWS;
    else camera_row -= SCROLL_ROWS;
    camera_column &= 31;
    camera_row &= 31;
}

/* The hero is carried along: he ends at the opposite edge. */
static void scroll_by_one(u8 step) {
    switch (transition_direction) {
    case RIGHT:
        draw_column(step);
        scroll_x += 8;
        hero.x -= 7 + (step & 1);
        break;
    case LEFT:
        draw_column(SCROLL_COLUMNS - 1 - step);
        scroll_x -= 8;
        hero.x += 7 + (step & 1);
        break;
    case DOWN:
        draw_row(step);
        scroll_y += 8;
        hero.y -= 7 + !(step & 3);
        break;
    default:
        draw_row(SCROLL_ROWS - 1 - step);
        scroll_y -= 8;
        hero.y += 7 + !(step & 3);
    }
}

static void cross_end(void) {
    if (transition_direction == RIGHT) hero.x = FIRST_X;
    if (transition_direction == LEFT) hero.x = LAST_X;
    if (transition_direction == DOWN) hero.y = FIRST_Y;
    if (transition_direction == UP) hero.y = LAST_Y;
    local_respawn_x = hero.x;
    local_respawn_y = hero.y;
    local_respawn_dir = hero.direction;
    entered_warp_pos = 255;
    scroll_mode = 1;
    transition_state = 2;
    cutscene_index = 1;
    menu_disabled = 0;
}

void cross_update(void) {
    u8 last = (transition_direction & 1 ? SCROLL_COLUMNS : SCROLL_ROWS) - 1;
    if (scroll_step >= HEAD_TO_LOAD) {
        load_part(scroll_step++);
        return;
    }
    scroll_by_one(scroll_step);
    if (scroll_step++ == last) cross_end();
}

/* ---- doors, warps, riddles ---- */

u8 warp_check(u8 pos) {
    Warp *warp;
    u8 n;
    if (pos == entered_warp_pos) return 0;
    entered_warp_pos = 255;
    for (n = 0, warp = warps; n < warp_count; ++n, ++warp)
        if (warp->pos == pos) {
            room_enter(warp->group, warp->room, warp->dest, warp->direction);
            return 1;
        }
    return 0;
}

Spot *spot_find(u8 pos) {
    u8 n;
    for (n = 0; n < spot_count; ++n)
        if (spots[n].pos == pos) return spots + n;
    return 0;
}

/* Doors of several cells open together. */
static void open_along(u8 pos, u8 step, u8 act) {
    for (; WORLD->tile_act[tile_at(pos)] == act; pos += step) tile_change(pos);
}

/* Open a key door or cracked wall for good, on both sides. */
void open_door(u8 pos) {
    u8 act = WORLD->tile_act[tile_at(pos)], step = pos < 16 || pos >= 112 ? 1 : 16;
    *room_flags() |= door_bit(pos);
    open_along(pos, step, act);
    open_along(pos - step, -step, act);
    if (pos < 16) *(room_flags() - 16) |= 4;
    else if ((pos & 15) == 9) *(room_flags() + 1) |= 8;
    else if (pos >= 112) *(room_flags() + 16) |= 1;
    else if (!(pos & 15)) *(room_flags() - 1) |= 2;
}

/* Hidden chests of a solved room appear; one under the hero, who could not leave it, when he has stepped aside. */
static void reveal_chests(void) {
    u8 n;
    Spot *spot;
    for (n = 0, spot = spots; n < spot_count; ++n, ++spot) {
        if (!(spot->flag & REC_HIDDEN) || spot->pos == active_tile_pos) continue;
        spot->flag &= ~REC_HIDDEN;
        tile_set(spot->pos, WORLD->tile_of_id[TILE_CHEST]);
        part_spawn(PART_PUFF, 0, ((spot->pos & 15) << 4) + 8, (spot->pos & 0xF0) + 8);
    }
}

static void reveal_treasures(void) {
    u8 n;
    Object *object;
    for (n = 0; n < PEOPLE; ++n) {
        object = person_slot(n);
        if (object->enabled && !object->state) {
            object->state = 8;
            sound(SOUND_DROP);
        }
    }
}

/* The riddle of the room is solved: gates and shutters open for good, hidden things appear. */
void room_solve(void) {
    u8 n;
    if (*room_flags() & ROOM_SOLVED) return;
    *room_flags() |= ROOM_SOLVED;
    sound(SOUND_SOLVED);
    if (shutter_count) sound(SOUND_DOOR);
    for (n = 0; n < shutter_count; ++n) tile_change(shutters[n]);
    open_shutters = shutter_count;
    reveal_treasures();
    reveal_chests();
}

/* Buttons held down, in the order of their cells, as bits of active_triggers. */
static void press_button(u8 pos) {
    u8 bit = 1;
    sound(SOUND_SPLASH);
    tile_change(pos);
    while (active_triggers & bit) bit <<= 1;
    active_triggers |= bit;
}

void room_update(void) {
    u8 act = WORLD->tile_act[tile_at(active_tile_pos)];
    if (act == ACT_BUTTON && !link_in_air) press_button(active_tile_pos);
    if (*room_flags() & ROOM_SOLVED) {
        reveal_chests();
        return;
    }
    if (solve_by == SOLVE_CLEARED && !num_enemies) room_solve();
    if (solve_by == SOLVE_PRESSED && active_triggers == button_bits) room_solve();
}

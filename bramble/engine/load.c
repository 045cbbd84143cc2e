/* Loading rooms: unpacking them from the world into room_layout, room_collisions and the object slots.
 *
 * A room is 10 x 8 metatiles of 16 x 16 pixels. Its cells are numbered row * 16 + column ("pos"), in room_layout
 * (which metatile) and room_collisions (what is solid).
 */
#include "load.h"

enum { THEME_OUTDOORS, THEME_HOUSE, THEME_CAVE };
enum { FIRST_PAIR = 96 };

u8 room_theme, solve_by, button_bits;
Spot spots[SPOTS];
Warp warps[WARPS];
u8 shutters[SHUTTERS];
u8 shutter_count, spot_count, warp_count;
static u8 person_count, enemy_count;
static u8 pending[16]; /* second halves of pairs, while a room is unpacked */
static u8 pending_count, next_pos;
static const u8 *records; /* of the room being loaded */

static const u8 record_length[] = {0, 5, 3, 6, 5, 4, 6, 0, 3, 3};

/* ---- cells ---- */

/* Number of the metatile at a cell in the tables of the world. */
u8 tile_at(u8 pos) { return WORLD->tile_of_id[room_layout[pos]]; }

static void tile_put(u8 pos, u8 number) {
    room_layout[pos] = WORLD->tile_id[number];
    room_collisions[pos] = WORLD->tile_solid[number];
}

void tile_set(u8 pos, u8 number) {
    tile_put(pos, number);
    changed_tile_head = (changed_tile_head + 1) & 31;
    changed_tile_tail = changed_tile_head;
    if (!queue_full()) draw_cell(pos);
}

/* Cut, lift, open: each metatile says what it becomes. */
void tile_change(u8 pos) { tile_set(pos, WORLD->tile_becomes[tile_at(pos)]); }

static u8 next_cell(u8 pos) {
    ++pos;
    return (pos & 15) == 10 ? pos + 6 : pos;
}

/* ---- loading ---- */

void clear_objects(void) {
    u8 n;
    for (n = 0; n < 16; ++n) {
        enemy_slot(n)->enabled = 0;
        part_slot(n)->enabled = 0;
    }
    for (n = 0; n < 14; ++n) person_slot(n)->enabled = 0;
    for (n = 0; n < 32; ++n) talkable_list[n] = 0;
    bomb.enabled = carried.enabled = sliding.enabled = weapon.enabled = 0;
    link_grab_state = 0;
    sword_timer = 0;
}

static void clear_border(void) {
    u8 n;
    for (n = 0; n < 176; ++n) room_collisions[n] = SOLID_BORDER;
    for (n = 0; n < 16; ++n) room_collisions[0xF0 + n] = SOLID_BORDER;
    next_pos = pending_count = 0;
}

/* Half of the cells of a room, row by row. Numbers from FIRST_PAIR on stand for two others, as in texts. */
static void unpack_half(void) {
    u8 left, number, pos = next_pos;
    const u8 *pair;
    for (left = 40; left; --left) {
        number = pending_count ? pending[--pending_count] : *records++;
        while (number >= FIRST_PAIR) {
            pair = WORLD->tile_pairs + ((u16)(u8)(number - FIRST_PAIR) << 1);
            pending[pending_count++] = pair[1];
            number = pair[0];
        }
        tile_put(pos, number);
        pos = next_cell(pos);
    }
    next_pos = pos;
}

static void set_place(void) {
    u8 inside = room_theme > THEME_CAVE;
    active_collisions = room_theme == THEME_OUTDOORS ? 0 : room_theme == THEME_HOUSE ? 3 : 4;
    tileset_flags = room_theme == THEME_OUTDOORS ? 1 : room_theme == THEME_HOUSE ? 4 : inside ? 8 : 16;
    dungeon_index = 255;
    loading_room = active_room;
    if (inside) {
        dungeon_index = 1 + ((active_room >> 3) & 1) + ((active_room >> 6) & 2) + (active_group == 5 ? 4 : 0);
        dungeon_map_position = (active_room & 7) | ((active_room >> 1) & 0x38);
        minimap_dungeon_position = dungeon_map_position;
        dungeon_visited_floors[dungeon_index] = 1;
    }
    if (active_group < 3 || inside) {
        minimap_group = active_group;
        minimap_room = active_room;
    }
}

static void load_head(void) {
    const u8 *data = room_find(active_group, active_room);
    room_theme = data[0] & 15;
    solve_by = data[0] >> 4;
    set_place();
    records = data + 1;
    clear_border();
    open_shutters = active_triggers = last_opened_chest_pos = num_enemies = 0;
    button_bits = shutter_count = spot_count = warp_count = person_count = enemy_count = 0;
    link_pushing_direction = NOWHERE;
    push_counter = 20;
}

/* Flag bit of a door or wall that stays open: by the side of the room it stands on. */
u8 door_bit(u8 pos) {
    u8 column = pos & 15;
    if (pos < 16) return 1;
    if (column == 9) return 2;
    if (pos >= 112) return 4;
    return column ? 1 : 8;
}

static void open_what_was_opened(void) {
    u8 pos, act, flags = *room_flags();
    for (pos = 0; pos < CELLS; pos = next_cell(pos)) {
        act = WORLD->tile_act[tile_at(pos)];
        if (act == ACT_SHUTTER) {
            if (flags & ROOM_SOLVED) tile_put(pos, WORLD->tile_becomes[tile_at(pos)]);
            else if (shutter_count < SHUTTERS) shutters[shutter_count++] = pos;
        } else if (act == ACT_BOMB || act == ACT_KEY || act == ACT_BOSS_KEY) {
            if (flags & door_bit(pos)) tile_put(pos, WORLD->tile_becomes[tile_at(pos)]);
        } else if (act == ACT_BUTTON || act == ACT_HEAVY) {
            button_bits = (button_bits << 1) | 1;
        }
    }
    *room_flags() |= ROOM_VISITED;
}

static const u8 *script_at(const u8 *where) { return (const u8 *)(where[0] | ((u16)where[1] << 8)); }

static Spot *add_spot(u8 pos, u8 flag, const u8 *script) {
    Spot *spot = spots + spot_count++;
    spot->pos = pos;
    spot->flag = flag;
    spot->script = script;
    return spot;
}

static void load_person(const u8 *record) {
    Object *person = object_spawn(person_slot(person_count), PERSON, record[1]);
    talkable_list[person_count << 1] = 0xD2 + person_count;
    talkable_list[(person_count << 1) + 1] = 0x40;
    person->subid = record[2];
    person->counter1 = record[3];
    person->counter2 = record[4];
    room_collisions[record[1]] = SOLID_FULL;
    ++person_count;
}

static void load_treasure(const u8 *record) {
    u8 flag = record[3] & ~REC_HIDDEN;
    Object *treasure;
    if (*room_flags() & flag) return;
    treasure = object_spawn(person_slot(person_count++), record[2] == T_ESSENCE ? ESSENCE : TREASURE, record[1]);
    treasure->treasure_id = record[2];
    treasure->subid = record[2];
    treasure->treasure_taken = flag;
    treasure->counter1 = record[4];
    treasure->counter2 = record[5];
    if ((record[3] & REC_HIDDEN) && !(*room_flags() & ROOM_SOLVED)) treasure->state = 0;
}

static void show_chest(u8 pos, u8 flag) { tile_put(pos, WORLD->tile_of_id[*room_flags() & flag ? TILE_CHEST_OPEN : TILE_CHEST]); }

static void load_chest(const u8 *record) {
    u8 hidden = (record[2] & REC_HIDDEN) && !(*room_flags() & ROOM_SOLVED);
    add_spot(record[1], hidden ? record[2] : record[2] & ~REC_HIDDEN, script_at(record + 3));
    if (!hidden) show_chest(record[1], record[2] & ~REC_HIDDEN);
}

static void load_warp(const u8 *record) {
    Warp *warp = warps + warp_count++;
    warp->pos = record[1];
    warp->group = record[2];
    warp->room = record[3];
    warp->dest = record[4];
    warp->direction = record[5];
}

/* Cells that look different in some seasons. Returns the length of the record. */
static u8 load_season(const u8 *record) {
    u8 n = record[2], now = record[1] & (1 << season);
    const u8 *cell = record + 3;
    for (; n; --n, cell += 2)
        if (now) tile_put(cell[0], cell[1]);
    return 3 + (record[2] << 1);
}

static void load_enemy(const u8 *record) {
    if (record[2] == ENEMY_BOSS && (*room_flags() & ROOM_SOLVED)) return;
    enemy_spawn(enemy_count++, record[2], record[1]);
}

static void load_record(const u8 *record) {
    switch (record[0]) {
    case REC_PERSON:
        load_person(record);
        break;
    case REC_ENEMY:
        load_enemy(record);
        break;
    case REC_TREASURE:
        load_treasure(record);
        break;
    case REC_CHEST:
        load_chest(record);
        break;
    case REC_SIGN:
        add_spot(record[1], 0, script_at(record + 2));
        break;
    case REC_WARP:
        load_warp(record);
        break;
    case REC_ENTER:
        script_start(script_at(record + 1));
        break;
    }
}

static void load_records(void) {
    u8 skip = 0;
    const u8 *record = records;
    while (*record) {
        if (*record == REC_SEASON) {
            record += load_season(record);
            continue;
        }
        if (*record == REC_IF) {
            if (!condition_holds(record[1], record[2])) skip = 1;
        } else {
            if (!skip) load_record(record);
            skip = 0;
        }
        record += record_length[*record];
    }
}

/* A room is loaded in parts that each fit in a frame. After the last, the step goes on at 0. */
void load_part(u8 part) {
    switch (part) {
    case HEAD_TO_LOAD:
        load_head();
        break;
    case UPPER_HALF:
    case LOWER_HALF:
        unpack_half();
        break;
    case RECORDS_TO_LOAD:
        load_records();
        break;
    case DOORS_TO_OPEN:
        open_what_was_opened();
        if (scroll_mode == 8) palette_theme();
        break;
    }
}

void load_room(void) {
    u8 part;
    clear_objects();
    for (part = HEAD_TO_LOAD; part; ++part) {
        frame_end();
        load_part(part);
    }
    frame_end();
}
